"""The request of a training run, by the keywords of `vitrail.train` and `vitrail.finetune`."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from math import inf
from pathlib import Path
from typing import Any, TypeVar

from vitrail.base.errors import ConfigError, did_you_mean
from vitrail.model.build import as_size
from vitrail.model.patches import Size
from vitrail.runs.bounds import check_bounds
from vitrail.runs.changes import Changes
from vitrail.runs.config import RunConfig
from vitrail.runs.data import absolute
from vitrail.runs.data_config import DataConfig

SHAPING = ("recipe", "image_size", "fraction", "val_fraction")
"""Keywords that shape a run once and for all: they cannot change a stored one."""
PLACES = ("data", "others", "root", "config", "resume", "extend", "out")
"""Keywords that are paths."""
LENGTHS = ("epochs", "minutes")
"""The same of its length, unless it is extended."""


@dataclass(frozen=True, kw_only=True)
class RunRequest(Changes):
    """The keywords that every run has, beside the single settings."""

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

    def new_data(self) -> DataConfig:
        """Return which data a new run takes, and check that it has one length."""
        self.check_length()
        return self.data_config(str(self.data or "sample"))

    def moved(self, config: RunConfig) -> RunConfig:
        """Return a stored run with the place where its data are now, if that was requested."""
        return (
            config if self.data is None else replace(config, data=replace(config.data, where=absolute(str(self.data))))
        )

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
        keywords = [f"`{name}`" for name in (*SHAPING, *names) if self.requests(name)]
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
