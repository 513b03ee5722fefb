"""What every objective without labels has in common: how it is watched, and pictures of what it predicts."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

from vitrail.base.errors import ConfigError, did_you_mean
from vitrail.base.shapes import PixelBatch
from vitrail.data.augment.mixing import Targets as Indices
from vitrail.training.learner import Learner, ObjectiveConfig

Probe = Literal["auto", "fewshot", "neighbours", "none"]
"""What is measured while a model learns without labels."""


@dataclass(frozen=True, kw_only=True)
class SelfSupervisedConfig(ObjectiveConfig, ABC):
    """An objective that looks at no label."""

    needs_labels: ClassVar[bool] = False
    reconstructs: ClassVar[bool] = False
    """Whether the learner completes images (`Reconstructing`)."""
    probe: Probe = "auto"
    """How features are measured as training goes: `fewshot` fits least squares on a few labelled images, `neighbours`
    looks for a changed copy of each image, `none` measures nothing, `auto` is `fewshot` where there are labels."""

    def __post_init__(self) -> None:
        """Refuse what is not a probe."""
        if self.probe not in get_args(Probe):
            known = get_args(Probe)
            raise ConfigError(
                f"probe is {self.probe!r}, but must be one of {', '.join(known)}.{did_you_mean(self.probe, known)}"
            )


@dataclass(frozen=True, kw_only=True, eq=False)
class Reconstruction:
    """Images as a learner saw them, and as it completes them."""

    corrupted: PixelBatch
    """The images with what is hidden in grey."""
    predicted: PixelBatch
    """The same with predictions in the place of what is hidden."""


class SelfSupervised(Learner):
    """A learner of images without labels."""

    score: ClassVar[str] = "probe_accuracy"


class Reconstructing(SelfSupervised):
    """A learner that completes images."""

    @abstractmethod
    def reconstruct(self, images: PixelBatch, indices: Indices) -> Reconstruction:
        """Hide parts of images as in epoch 0 of training, and complete them."""
