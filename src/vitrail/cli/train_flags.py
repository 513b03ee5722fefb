"""The flags of a training run, and the request that they make."""

import json
from dataclasses import dataclass, fields
from typing import Annotated, Any, Literal, TypeVar

from vitrail.base.errors import ConfigError
from vitrail.base.trackers import TrackerName
from vitrail.cli.report import Device, Switch, flag, parse_size

Requested = TypeVar("Requested")
"""A `RunRequest`, whose file imports torch; --help does not wait for that."""
RULE = "the recipe's, or chosen from the data"
Number = Annotated[float | None, flag("FLOAT", RULE)]
MixerName = Literal["attention", "axial", "window", "sparse", "linear", "pooling", "identity", "mlp", "convolution"]
Mixer = Annotated[
    MixerName | None,
    flag("attention|axial|window|sparse|linear|pooling|identity|mlp|convolution", "the model's"),
]
Count = Annotated[int | None, flag("INT", RULE)]


@dataclass(frozen=True, kw_only=True)
class RunFlags:
    """The flags of a run; those left out follow from the recipe or from the data."""

    recipe: Annotated[str | None, flag("NAME", "chosen from the data")] = None
    """A recipe of `vitrail recipes`."""
    image_size: Annotated[str | None, flag("PIXELS|HxW", RULE)] = None
    """Height and width that images are brought to, in pixels."""
    steps: Count = None
    """Updates of the weights."""
    epochs: Annotated[float | None, flag("FLOAT", RULE)] = None
    """Passes over the training images, in place of --steps."""
    minutes: Annotated[float | None, flag("MINUTES", "none")] = None
    """Train for this many minutes, evaluation and report included, in place of --steps."""
    batch: Count = None
    """Images in an update, over all ranks."""
    seed: Annotated[int | None, flag("INT", "0")] = None
    """Decides everything that is random."""
    optimizer: Annotated[Literal["adam", "sgd", "muon"] | None, flag("adam|sgd|muon", RULE)] = None
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
    averaging: Number = None
    """Factor of Polyak averaging of the weights, such as 0.9999; 0 is off."""
    layer_decay: Number = None
    """Factor on the learning rate from each layer to the one before it, above 0; 1 is off."""
    freeze: Annotated[tuple[str, ...], flag("NAME [NAME ...]", "none")] = ()
    """Parameters that stay as they are; * stands for anything."""
    precision: Annotated[
        Literal["float32", "bfloat16", "float16"] | None, flag("float32|bfloat16|float16", "float32")
    ] = None
    """Type of the activations."""
    val_fraction: Annotated[float | None, flag("FLOAT", "0.1")] = None
    """Share of the images, from 0 to 1, for val, where the data has no split of its own."""
    fraction: Annotated[float | None, flag("FLOAT", "1.0")] = None
    """Share of the training images to use, above 0 and at most 1; the same in every class."""
    skip_broken: Annotated[str | None, flag("NUMBER|PERCENT", "0")] = None
    """How many broken images may be skipped, such as 5 or 1%."""
    root: Annotated[str | None, flag("FOLDER", "the manifest's own")] = None
    """Where the paths of a CSV or JSON-lines file start from."""
    evaluate_every: Annotated[int | None, flag("STEPS", "a tenth of the run, more with many val images")] = None
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
    """Keep only each block's input in memory and compute the rest again: less memory, a third more time."""
    compile: Switch = False
    """Use torch.compile."""
    shard: Switch = False
    """Under torchrun: spread parameters, gradients and optimiser over the ranks (FSDP2)."""
    track: Annotated[tuple[TrackerName, ...], flag("NAME [NAME ...]", "none")] = ()
    """Trackers that see the metrics too: tensorboard, wandb, mlflow."""
    restart: Switch = False
    """Begin again in a folder that has a run already; that one is kept under another name."""
    same_data: Switch = False
    """Resume although the files of the data have other times: their images are the same."""
    set: Annotated[tuple[str, ...], flag("PATH=VALUE [...]", "none")] = ()
    """Any setting of config.json by its path, such as augmentation.flip=0 or optimizer.beta2=0.95."""
    json: Switch = False
    """Write the result as JSON to stdout."""


@dataclass(frozen=True, kw_only=True)
class ScratchFlags(RunFlags):
    """Further flags of a run that begins with random weights."""

    model: Annotated[str | None, flag("MODEL", RULE)] = None
    """A model of `vitrail models`, such as S/16, R50+B/16 or R50x1."""
    mixer: Mixer = None
    """How the tokens of a block mix: attention over all, or another mixer (docs/models.md)."""
    channels: Annotated[int | None, flag("INT", "the data's")] = None
    """Channels of the images: 3 makes grey ones coloured, 1 makes coloured ones grey."""
    config: Annotated[str | None, flag("FILE", "none")] = None
    """Run these settings again: the config.json of a run."""
    resume: Annotated[str | None, flag("RUN", "none")] = None
    """Resume the run in this folder, with its own settings."""
    extend: Annotated[str | None, flag("RUN", "none")] = None
    """Train the run in this folder for longer, as a new run that begins with its state: --steps, --epochs or --minutes
    more."""


@dataclass(frozen=True, kw_only=True)
class ClassifierFlags(RunFlags):
    """Further flags of a run that learns classes."""

    label_smoothing: Number = None
    """Part of each target that is spread over all classes, from 0 to below 1."""
    mixup: Number = None
    """Strength of blending pairs of images, such as 0.2; 0 is off."""
    cutmix: Number = None
    """Strength of pasting parts of images into each other, such as 1; 0 is off."""
    drop_patches: Number = None
    """Part of each image's patches, from 0 to below 1, that training leaves out, for speed."""
    balanced: Switch = False
    """Show each class equally often."""
    class_weights: Switch = False
    """Weigh images by the inverse frequency of their class."""
    patience: Annotated[int | None, flag("INT", "never ends early")] = None
    """Evaluations without a better accuracy after which training ends; the best weights are kept."""


def request_of(kind: type[Requested], flags: RunFlags) -> Requested:
    """Return what the flags ask for; they have the names of the keywords, and some are written otherwise."""
    names = [field.name for field in fields(kind) if field.name != "settings"]  # type: ignore[arg-type]
    keywords = {name: getattr(flags, name) for name in names}
    keywords["image_size"] = None if flags.image_size is None else parse_size(flags.image_size)
    keywords["micro_batch"] = _micro_batch(flags.micro_batch)
    keywords["settings"] = read_settings(flags.set)
    return kind(**keywords)


def _micro_batch(text: str | None) -> int | Literal["auto"] | None:
    if text is None:
        return None
    if text == "auto":
        return "auto"
    if not (text.isdigit() and int(text)):
        raise ConfigError(f"--micro-batch is given {text!r}, but takes a number of images, or auto.")
    return int(text)


def read_settings(assignments: tuple[str, ...]) -> dict[str, Any]:
    """Read settings by path from the words after --set."""
    settings = {}
    for assignment in assignments:
        path, equals, value = assignment.partition("=")
        if not equals:
            raise ConfigError(f"--set is given {assignment!r}, but takes PATH=VALUE such as augmentation.flip=0.")
        settings[path] = _value(value)
    return settings


def _value(text: str) -> Any:
    """Read a value as JSON where it is JSON, and as text otherwise."""
    try:
        return json.loads(text)
    except ValueError:
        return {"none": None}.get(text.lower(), text)
