"""The result of a run: `result.json` is this."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from vitrail.base.reading import read_json
from vitrail.base.settings import from_dict, to_dict

Weights = Literal["last", "averaged", "best"]


@dataclass(frozen=True, kw_only=True)
class RunCost:
    """What a run took; None where it could not be measured."""

    parameters: int
    """Weights of the model."""
    gmacs_per_image: float
    """Multiply-accumulates of a forward pass, in billions."""
    seconds: float
    """Time of training, without evaluations."""
    images_per_second: float | None = None
    gflops_per_second: float | None = None
    share_of_peak: float | None = None
    """Those beside a large matrix product on the same machine."""
    core_hours: float | None = None
    exaflops: float | None = None
    """Of all steps."""

    def as_dict(self) -> dict[str, float | int]:
        """Return the measured values."""
        return {name: value for name, value in to_dict(self).items() if value is not None}


@dataclass(frozen=True, kw_only=True)
class Result:
    """The figures of a finished run."""

    weights: Weights
    """Which weights were saved: the last, their average, or those of the best evaluation."""
    steps: int
    """Steps that were taken."""
    epochs: float
    """How often each training image was seen."""
    split: str | None = None
    """The split that the model was evaluated on; None without one."""
    images: int | None = None
    """Images of it that could be read."""
    figures: Mapping[str, float] = field(default_factory=dict)
    """Accuracy, loss and top5 on these images, and those of other evaluators, with their names in front."""
    cost: RunCost
    bad_steps: tuple[int, ...] = ()
    """Steps that were skipped, since their loss was not finite."""
    skipped: tuple[str, ...] = ()
    """Images that could not be read."""
    digest: str | None = None
    """SHA-256 of the weights in the model file."""
    run: str | None = None
    """Identity of the run's settings."""

    @property
    def accuracy(self) -> float | None:
        """The share of right answers; None without an evaluation."""
        return self.figures.get("accuracy")

    @property
    def loss(self) -> float | None:
        """The mean cross-entropy; None without an evaluation."""
        return self.figures.get("loss")

    def as_dict(self) -> dict[str, Any]:
        """Return it as `--json` prints it: figures beside the rest, without values that were not measured."""
        settings = to_dict(self)
        scope = {} if self.images is None else {"split": self.split, "images": self.images}
        begin = {name: settings[name] for name in ("weights", "steps", "epochs")} | scope | settings["figures"]
        end = {"cost": self.cost.as_dict()} | {name: settings[name] for name in ("bad_steps", "skipped")}
        return begin | end | ({} if self.digest is None else {"digest": self.digest})


def read_result(path: Path) -> Result:
    """Read the result of a finished run, strictly."""
    return from_dict(Result, read_json(path), where=f"the figures in {path}")
