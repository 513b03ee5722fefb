"""The request of a training run, by the keywords of `vitrail.train` and `vitrail.finetune`.

None, False and an empty sequence are not requested: the recipe, the rule or the stored run decides.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from math import inf
from pathlib import Path
from typing import Any, Literal, TypeVar

from vitrail.base.errors import ConfigError, did_you_mean
from vitrail.base.settings import from_dict
from vitrail.base.trackers import TrackerName
from vitrail.model.build import as_size
from vitrail.model.patches import Size
from vitrail.runs.bounds import check_bounds
from vitrail.runs.config import with_settings
from vitrail.runs.data import absolute, absolute_data
from vitrail.runs.data_config import DataConfig
from vitrail.runs.execution import Device
from vitrail.training.optimizers import OptimizerName
from vitrail.training.schedules import Shape
from vitrail.training.step import Precision

# Keyword -> the setting of `RunConfig` that it sets, by path.
PATHS = {
    "batch": "batch",
    "seed": "seed",
    "skip_broken": "data.skip_broken",
    "root": "data.root",
    "balanced": "data.balanced",
    "optimizer": "optimizer.name",
    "learning_rate": "schedule.peak",
    "schedule": "schedule.shape",
    "warmup": "schedule.warmup_steps",
    "weight_decay": "optimizer.weight_decay",
    "layer_decay": "optimizer.layer_decay",
    "freeze": "optimizer.frozen",
    "dropout": "model.dropout",
    "label_smoothing": "objective.label_smoothing",
    "class_weights": "objective.class_weights",
    "mixup": "augmentation.mixup",
    "cutmix": "augmentation.cutmix",
    "averaging": "averaging",
    "drop_patches": "objective.drop_patches",
    "patience": "patience",
    "precision": "precision",
    "evaluate_every": "evaluate_every",
    "checkpoint_every": "execution.checkpoint_every",
}
# The same for how the work is done, which a stored run may change.
EXECUTION = {
    name: f"execution.{name}"
    for name in ("device", "threads", "workers", "recompute", "shard", "keep_checkpoints", "track", "micro_batch")
} | {"compile": "execution.compiled"}
SHAPING = ("recipe", "image_size", "fraction", "val_fraction")
"""Keywords that shape a run once and for all: they cannot change a stored one."""
PLACES = ("data", "others", "root", "config", "resume", "extend", "out")
"""Keywords that are paths."""
LENGTHS = ("epochs", "minutes")
"""The same of its length, unless it is extended."""


@dataclass(frozen=True, kw_only=True)
class RunRequest:
    """The keywords that every run has."""

    data: str | Path | None = None
    """A folder of class folders, a CSV, shards, arrays: whatever `vitrail data` opens."""
    recipe: str | None = None
    """The name of a recipe."""
    image_size: int | Size | None = None
    """Height and width that images are brought to, in pixels; one number for a square."""
    steps: int | None = None
    """Updates of the weights."""
    epochs: float | None = None
    """Passes over the training images, in place of steps."""
    minutes: float | None = None
    """Train as many steps as fit into this time."""
    batch: int | None = None
    """Images in an update, over all ranks."""
    seed: int | None = None
    """Everything random follows from it."""
    optimizer: OptimizerName | None = None
    learning_rate: float | None = None
    """The highest learning rate."""
    schedule: Shape | None = None
    """How the learning rate falls."""
    warmup: int | None = None
    """Steps in which the learning rate rises."""
    weight_decay: float | None = None
    dropout: float | None = None
    averaging: float | None = None
    """Factor of Polyak averaging; 0 is off."""
    layer_decay: float | None = None
    freeze: Sequence[str] = ()
    """Parameters that stay as they are; * stands for anything."""
    precision: Precision | None = None
    val_fraction: float | None = None
    fraction: float | None = None
    skip_broken: str | None = None
    root: str | None = None
    evaluate_every: int | None = None
    checkpoint_every: int | None = None
    keep_checkpoints: int | None = None
    micro_batch: int | Literal["auto"] | None = None
    """Images that go through the model at once; auto finds the most that fit."""
    workers: int | None = None
    threads: int | None = None
    device: Device | None = None
    recompute: bool = False
    compile: bool = False
    shard: bool = False
    track: Sequence[TrackerName] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Any other setting of `RunConfig` by its path, such as augmentation.flip; it overrides the others."""
    resume: str | Path | None = None
    """The folder of a run to resume, with its own settings."""
    restart: bool = False
    """Begin again in a folder that has a run already; that one is kept under another name."""
    same_data: bool = False
    """Resume although the files of the data have other times: their images are the same."""
    out: str | Path | None = None
    """The folder of the run."""

    @property
    def size(self) -> Size | None:
        """The image size as height and width."""
        return None if self.image_size is None else as_size(self.image_size)

    @property
    def changes(self) -> dict[str, Any]:
        """The requested settings that decide the result, by path."""
        own = {field.name for field in fields(self)}
        changes = {path: getattr(self, name) for name, path in PATHS.items() if name in own and self.asks(name)}
        if changes.get("averaging") == 0:
            changes["averaging"] = None
        return changes | dict(self.settings)

    @property
    def execution(self) -> dict[str, Any]:
        """The requested settings of how the work is done, by path; `auto` is resolved later."""
        paths = {name: path for name, path in EXECUTION.items() if self.asks(name)}
        return {path: getattr(self, name) for name, path in paths.items() if getattr(self, name) != "auto"}

    def asks(self, name: str) -> bool:
        """Return whether a keyword is set; 0 is a value."""
        value = getattr(self, name)
        return value is not None and value is not False and value != () and value != []

    def data_config(self, where: str | Path) -> DataConfig:
        """Return which data a new run takes, and check that it has one length."""
        self.check_length()
        shares = {f"data.{name}": getattr(self, name) for name in ("val_fraction", "fraction") if self.asks(name)}
        paths = shares | {path: value for path, value in self.changes.items() if path.startswith("data.")}
        settings = with_settings({"data": {"where": str(where)}}, paths)["data"]
        return absolute_data(from_dict(DataConfig, settings, where="the settings of the data"))

    def other_data(self) -> dict[str, Any]:
        """Return where the data of a stored run are now, by path, if that was asked for."""
        return {} if self.data is None else {"data.where": absolute(str(self.data))}

    def check_length(self) -> None:
        """Refuse more than one length, and one that no run has."""
        if sum(length is not None for length in (self.steps, self.epochs, self.minutes)) > 1:
            raise ConfigError("a run has one length: give `steps`, `epochs` or `minutes`.")
        check_bounds({"steps": self.steps, "epochs": self.epochs, "minutes": self.minutes})
        for name in ("epochs", "minutes", "fraction"):
            value = getattr(self, name)
            if value is not None and not 0 < value <= (1 if name == "fraction" else inf):
                raise ConfigError(f"`{name}` is {value}, but must be above 0{' and at most 1' * (name == 'fraction')}.")

    def refuse(self, names: Sequence[str], way: str) -> None:
        """Refuse keywords that cannot change a stored run; `way` is the keyword that names it."""
        keywords = [f"`{name}`" for name in (*SHAPING, *names) if self.asks(name)]
        keywords += ["`micro_batch` auto"] if self.micro_batch == "auto" else []
        if keywords:
            raise ConfigError(
                f"{', '.join(keywords)} cannot change a stored run; leave {'it' if len(keywords) == 1 else 'them'} "
                f"out, or start a new run without `{way}`."
            )


@dataclass(frozen=True, kw_only=True)
class ClassifierRequest(RunRequest):
    """The keywords of a run that learns classes."""

    label_smoothing: float | None = None
    mixup: float | None = None
    cutmix: float | None = None
    drop_patches: float | None = None
    balanced: bool = False
    class_weights: bool = False
    patience: int | None = None


Requested = TypeVar("Requested", bound=RunRequest)


def make_request(kind: type[Requested], data: Any, keywords: Mapping[str, Any]) -> Requested:
    """Make a request from the keywords of a function; an unknown one is refused with similar names."""
    names = [field.name for field in fields(kind) if field.name != "data"]
    for name in keywords:
        if name not in names:
            near = did_you_mean(name, names)
            raise ConfigError(f"there is no keyword {name!r}; settings by path go into `settings`.{near}")
    for name in PLACES:
        value = data if name == "data" else keywords.get(name)
        for place in value if isinstance(value, list | tuple) else (value,):
            if isinstance(place, str | os.PathLike) and not os.fspath(place):
                shown = "data" if name == "others" else name
                raise ConfigError(f"`{shown}` is empty, but must be a path.")
    return kind(data=data, **keywords)
