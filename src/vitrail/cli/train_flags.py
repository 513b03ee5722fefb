"""The flags of a training run, and the settings that they stand for."""

import json
from dataclasses import dataclass
from math import inf, isfinite
from typing import Annotated, Any, Literal

from vitrail.base.errors import ConfigError
from vitrail.base.settings import from_dict
from vitrail.base.trackers import TrackerName
from vitrail.cli.report import Switch, flag
from vitrail.runs.config import DataConfig, Device, with_settings
from vitrail.train.optimizers import OptimizerName

RULE = "the recipe's, or chosen from the data"
Number = Annotated[float | None, flag("FLOAT", RULE)]
Count = Annotated[int | None, flag("INT", RULE)]


@dataclass(frozen=True, kw_only=True)
class RunFlags:
    """What can be said about a run; what is left out follows from the recipe or from the data."""

    recipe: Annotated[str | None, flag("NAME", "chosen from the data")] = None
    """A recipe of `vitrail recipes`."""
    image_size: Annotated[str | None, flag("PIXELS|HxW", RULE)] = None
    """Height and width that images are brought to, in pixels."""
    steps: Count = None
    """Updates of the weights."""
    epochs: Annotated[float | None, flag("FLOAT", RULE)] = None
    """Passes over the training images, in place of --steps."""
    minutes: Annotated[float | None, flag("FLOAT", "none")] = None
    """Measure the speed, then train as many steps as fit into so many minutes."""
    batch: Count = None
    """Images in an update, over all ranks."""
    seed: Annotated[int | None, flag("INT", "0")] = None
    """Everything random follows from it."""
    optimizer: Annotated[OptimizerName | None, flag("adam|sgd|muon", RULE)] = None
    """Adam, SGD with momentum, or Muon for the blocks and Adam for the rest; all with decoupled weight decay."""
    learning_rate: Number = None
    """The highest learning rate."""
    schedule: Annotated[Literal["linear", "cosine", "constant"] | None, flag("linear|cosine|constant", RULE)] = None
    """How the learning rate falls."""
    warmup: Count = None
    """Steps in which the learning rate rises."""
    weight_decay: Number = None
    """Part of the weights that a step takes away, times the learning rate."""
    dropout: Number = None
    """Probability after every dense layer, from 0 to below 1."""
    label_smoothing: Number = None
    """Part of each target that is spread over all classes."""
    mixup: Number = None
    """Strength of blending pairs of images; 0 is off."""
    cutmix: Number = None
    """Strength of pasting parts of images into each other; 0 is off."""
    averaging: Number = None
    """Factor of Polyak averaging of the weights, such as 0.9999; 0 is off."""
    drop_patches: Number = None
    """Part of each image's patches that training leaves out, for speed."""
    layer_decay: Number = None
    """Factor on the learning rate from each layer to the one before it."""
    freeze: Annotated[tuple[str, ...], flag("NAME [NAME ...]", "none")] = ()
    """Parameters that stay as they are; * stands for anything."""
    balanced: Switch = False
    """Show each class equally often."""
    class_weights: Switch = False
    """Weigh images by the inverse frequency of their class."""
    patience: Annotated[int | None, flag("INT", "never ends early")] = None
    """Evaluations without a better accuracy after which training ends; the best weights are kept."""
    precision: Annotated[
        Literal["float32", "bfloat16", "float16"] | None, flag("float32|bfloat16|float16", "float32")
    ] = None
    """Type of the activations."""
    val_fraction: Annotated[float | None, flag("FLOAT", "0.1")] = None
    """Share that is held out where the data has no split of its own."""
    fraction: Annotated[float | None, flag("FLOAT", "1.0")] = None
    """Share of the training images to use."""
    skip_broken: Annotated[str | None, flag("NUMBER|PERCENT", "0")] = None
    """How many broken images may be skipped, such as 5 or 1%."""
    root: Annotated[str | None, flag("FOLDER", "the manifest's own")] = None
    """Where the paths of a CSV or JSON-lines file start from."""
    evaluate_every: Annotated[int | None, flag("STEPS", "a tenth of the run, more with many held-out images")] = None
    """Steps between evaluations."""
    checkpoint_every: Annotated[int | None, flag("STEPS", "a twentieth of the run")] = None
    """Steps between checkpoints."""
    keep_checkpoints: Annotated[int | None, flag("INT", "2")] = None
    """Newest checkpoints that stay."""
    micro_batch: Annotated[str | None, flag("INT|auto", "the whole batch of a rank")] = None
    """Images that go through the model at once; auto finds the most that fit."""
    workers: Annotated[int | None, flag("INT", "0")] = None
    """Processes that read and augment images; 0 reads in the training process."""
    threads: Annotated[int | None, flag("INT", "torch's own choice")] = None
    """Threads for computing on the CPU."""
    device: Annotated[Device | None, flag("auto|cpu|cuda|mps", "auto")] = None
    """Where to compute; auto takes a GPU if there is one."""
    recompute: Switch = False
    """Keep only each block's input in memory and compute the rest again."""
    compile: Switch = False
    """Use torch.compile."""
    shard: Switch = False
    """Under torchrun: spread parameters, gradients and optimiser over the ranks (FSDP2)."""
    track: Annotated[tuple[TrackerName, ...], flag("NAME [NAME ...]", "none")] = ()
    """Trackers that see the metrics too: tensorboard, wandb, mlflow."""
    set: Annotated[tuple[str, ...], flag("PATH=VALUE [...]", "none")] = ()
    """Any setting of config.json by its path, such as augmentation.flip=0 or optimizer.beta2=0.95."""


# Flag -> the setting that it stands for.
PATHS = {
    "batch": "batch",
    "seed": "seed",
    "skip_broken": "data.skip_broken",
    "root": "data.root",
    "optimizer": "optimizer.name",
    "learning_rate": "schedule.peak",
    "schedule": "schedule.shape",
    "warmup": "schedule.warmup_steps",
    "weight_decay": "optimizer.weight_decay",
    "label_smoothing": "objective.label_smoothing",
    "mixup": "augmentation.mixup",
    "cutmix": "augmentation.cutmix",
    "averaging": "averaging",
    "drop_patches": "objective.drop_patches",
    "layer_decay": "optimizer.layer_decay",
    "patience": "patience",
    "precision": "precision",
    "evaluate_every": "evaluate_every",
    "checkpoint_every": "execution.checkpoint_every",
}
# The same for how the work is done, which a stored run may change.
EXECUTION = {
    name: f"execution.{name}"
    for name in ("device", "threads", "workers", "recompute", "shard", "keep_checkpoints", "track")
} | {"compile": "execution.compiled"}
SHAPING = ("recipe", "image_size", "epochs", "minutes", "fraction", "val_fraction")
"""Flags that shape a run once and for all: they cannot change a stored one."""


def settings_of(flags: RunFlags) -> dict[str, Any]:
    """Return the settings that were given by hand, by path."""
    given = {path: getattr(flags, name) for name, path in PATHS.items() if getattr(flags, name) is not None}
    if given.get("averaging") == 0:
        given["averaging"] = None
    if flags.freeze:
        given["optimizer.frozen"] = list(flags.freeze)
    if flags.class_weights:
        given["objective.class_weights"] = True
    if flags.dropout is not None:
        given["model.dropout"] = flags.dropout
    if flags.balanced:
        given["data.balanced"] = True
    for assignment in flags.set:
        path, equals, value = assignment.partition("=")
        if not equals:
            raise ConfigError(f"--set is given {assignment!r}, but takes PATH=VALUE such as augmentation.flip=0.")
        given[path] = _value(value)
    return given


def execution_of(flags: RunFlags) -> dict[str, Any]:
    """Return what was said of how the work is to be done, by path; a micro-batch that is to be found is not said."""
    micro = flags.micro_batch
    if micro not in (None, "auto") and not (micro.isdigit() and int(micro)):
        raise ConfigError(f"--micro-batch is given {micro!r}, but takes a number of images, or auto.")
    given = {path: getattr(flags, name) for name, path in EXECUTION.items()}
    given["execution.micro_batch"] = int(micro) if micro not in (None, "auto") else None
    return {path: value for path, value in given.items() if _is_said(value)}


def data_of(flags: RunFlags, where: str) -> DataConfig:
    """Return which data a new run takes, and check that it has one length."""
    if sum(given is not None for given in (flags.steps, flags.epochs, flags.minutes)) > 1:
        raise ConfigError("a run has one length: give --steps, --epochs or --minutes.")
    for name, most in (("epochs", inf), ("minutes", inf), ("fraction", 1.0)):
        given = getattr(flags, name)
        if given is not None and not (0 < given <= most and isfinite(given)):
            raise ConfigError(f"--{name} is {given}, but must be above 0{' and at most 1' if most == 1 else ''}.")
    said = {name: getattr(flags, name) for name in ("val_fraction", "fraction") if getattr(flags, name) is not None}
    told = {path: value for path, value in settings_of(flags).items() if path.startswith("data.")}
    settings = with_settings({"data": {"where": where} | said}, told)["data"]
    return from_dict(DataConfig, settings, where="the settings of the data")


def check_unshaped(flags: RunFlags, more: tuple[str, ...], way: str) -> None:
    """Refuse flags that a stored run has no use for any more."""
    given = [name for name in (*SHAPING, *more) if _is_said(getattr(flags, name))]
    given += ["micro_batch auto"] if flags.micro_batch == "auto" else []
    if given:
        raise ConfigError(
            f"{', '.join(_typed(name) for name in given)} cannot change a stored run; leave "
            f"{'it' if len(given) == 1 else 'them'} out, or start a new run without --{way}."
        )


def _is_said(value: Any) -> bool:
    """Tell a flag that was given from one that was not; 0 is something to say."""
    return value is not None and value is not False and value != ()


def _typed(name: str) -> str:
    """Return a flag as people type it."""
    return {"data": "DATA", "source": "--from"}.get(name, f"--{name.replace('_', '-')}")


def _value(text: str) -> Any:
    """Read a value as JSON where it is JSON, and as text otherwise."""
    try:
        return json.loads(text)
    except ValueError:
        return {"none": None}.get(text.lower(), text)
