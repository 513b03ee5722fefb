"""What a step minimises: an objective maps a model and a batch to a loss; classification is the first."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol, get_args, runtime_checkable

import torch
from torch import Tensor, nn

from vitrail.base.errors import ConfigError, did_you_mean
from vitrail.data.loader import Batch
from vitrail.data.preprocessing import Preprocessing
from vitrail.data.transforms import normalise
from vitrail.train.losses import PerClass, sigmoid_cross_entropy, soft_targets, softmax_cross_entropy

LossName = Literal["softmax", "sigmoid"]
_LOSSES: dict[str, Callable[..., Tensor]] = {"softmax": softmax_cross_entropy, "sigmoid": sigmoid_cross_entropy}


@runtime_checkable
class Objective(Protocol):
    """Anything that a loop can minimise."""

    def __call__(self, model: nn.Module, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        """Return the mean loss of a batch, and sums over its images of what else is to be seen."""


@dataclass(frozen=True, kw_only=True)
class LossConfig:
    """How wrong answers are counted."""

    name: LossName = "softmax"
    """Cross-entropy over all classes at once, or of each class by itself."""
    label_smoothing: float = 0.0
    """Part of each target that is spread over all classes."""
    class_weights: bool = False
    """Weigh images by the inverse frequency of their class."""

    def __post_init__(self) -> None:
        """Refuse what is no loss."""
        if self.name not in get_args(LossName):
            raise ConfigError(
                f"there is no loss {self.name!r}; choose softmax or sigmoid.{did_you_mean(self.name, _LOSSES)}"
            )
        if not 0 <= self.label_smoothing < 1:
            raise ConfigError(f"label_smoothing is {self.label_smoothing}, but must be from 0 to below 1.")


@dataclass(frozen=True, kw_only=True)
class Classification:
    """Learn the classes of images."""

    loss: LossConfig
    preprocessing: Preprocessing
    num_classes: int
    weights: PerClass | None = None
    """A weight for each class."""
    drop_patches: float = 0.0
    """Part of the patches that a training step leaves out, at random for each image."""

    def __call__(self, model: nn.Module, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        """Compute the loss, and count right answers; a mixed image counts for its larger share."""
        images = normalise(batch.images, self.preprocessing)
        logits = model(images, **self.options(batch))
        soft = soft_targets(
            batch.targets["class"],
            batch.targets["partner"],
            batch.targets["share"],
            self.num_classes,
            smoothing=self.loss.label_smoothing,
        )
        weights = None if self.weights is None else self.weights.to(logits.device)
        loss = _LOSSES[self.loss.name](logits, soft, weights)
        truth = torch.where(batch.targets["share"] >= 0.5, batch.targets["class"], batch.targets["partner"])
        return loss, {"correct": (logits.detach().argmax(1) == truth).sum()}

    def options(self, batch: Batch) -> dict[str, Any]:
        """Return how a Vision Transformer is to train faster; a ResNet takes any size."""
        options: dict[str, Any] = {"drop_patches": self.drop_patches} if self.drop_patches else {}
        if tuple(batch.images.shape[2:]) != self.preprocessing.image_size:
            options["any_size"] = True
        return options
