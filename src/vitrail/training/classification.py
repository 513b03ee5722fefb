"""Learning the classes of images: softmax or sigmoid cross-entropy over the logits of the model."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import torch
from torch import Tensor

from vitrail.base.errors import ConfigError, did_you_mean
from vitrail.data.batch import Batch
from vitrail.data.subsets import class_weights
from vitrail.data.transforms import normalise
from vitrail.model.contract import Model
from vitrail.model.family import ModelConfig
from vitrail.model.patches import Size
from vitrail.training.learner import Learner, ObjectiveConfig, Task
from vitrail.training.losses import PerClass, sigmoid_cross_entropy, soft_targets, softmax_cross_entropy

LossName = Literal["softmax", "sigmoid"]
_LOSSES: dict[str, Callable[..., Tensor]] = {"softmax": softmax_cross_entropy, "sigmoid": sigmoid_cross_entropy}


@dataclass(frozen=True, kw_only=True)
class ClassificationConfig(ObjectiveConfig, kind="classification"):
    """How wrong answers are counted."""

    loss: LossName = "softmax"
    """Cross-entropy over all classes at once, or of each class by itself."""
    label_smoothing: float = 0.0
    """Part of each target that is spread over all classes."""
    class_weights: bool = False
    """Weigh images by the inverse frequency of their class."""
    drop_patches: float = 0.0
    """Part of each image's patches that training leaves out, at random."""

    def __post_init__(self) -> None:
        """Refuse settings without a loss."""
        if self.loss not in get_args(LossName):
            raise ConfigError(
                f"there is no loss {self.loss!r}; choose softmax or sigmoid.{did_you_mean(self.loss, _LOSSES)}"
            )
        if not 0 <= self.label_smoothing < 1:
            raise ConfigError(f"label_smoothing is {self.label_smoothing}, but must be from 0 to below 1.")
        if not 0 <= self.drop_patches < 1:
            raise ConfigError(f"drop_patches is {self.drop_patches}, but must be from 0 to below 1.")

    @property
    def summary(self) -> str:
        """Name its differences from plain cross-entropy."""
        parts = [f"label smoothing {self.label_smoothing:g}"] if self.label_smoothing else []
        parts += [f"{self.drop_patches:.0%} of patches dropped"] if self.drop_patches else []
        return ", ".join(parts)

    def flops_factor(self, model: ModelConfig) -> float:  # noqa: ARG002 - the same for every model
        """Patches that are left out take their share of the work with them."""
        return 1 - self.drop_patches

    def check(self, model: ModelConfig, sizes: Sequence[Size]) -> None:
        """Refuse to drop patches of a model that has none."""
        model.check_patches(drop=self.drop_patches, sizes=sizes)

    def learner(self, model: Model, task: Task) -> "Classification":
        """Put the loss behind a model."""
        weights = torch.tensor(class_weights(np.array(task.counts)), dtype=torch.float32)
        return Classification(model, self, task, weights if self.class_weights else None)


class Classification(Learner):
    """A model that learns the classes of images."""

    weights: Tensor | None

    def __init__(self, model: Model, config: ClassificationConfig, task: Task, weights: PerClass | None = None) -> None:
        super().__init__(model)
        self.config, self.preprocessing = config, task.preprocessing
        self.register_buffer("weights", weights, persistent=False)  # follows from the data

    def forward(self, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        """Compute the loss, and count right answers; a mixed image counts for its larger share."""
        logits = self.model(normalise(batch.images, self.preprocessing), **self._options(batch))
        classes, partners, shares = (batch.targets[name] for name in ("class", "partner", "share"))
        soft = soft_targets(classes, partners, shares, logits.shape[1], smoothing=self.config.label_smoothing)
        loss = _LOSSES[self.config.loss](logits, soft, self.weights)
        truth = torch.where(shares >= 0.5, classes, partners)
        return loss, {"accuracy": (logits.detach().argmax(1) == truth).sum()}

    def _options(self, batch: Batch) -> dict[str, Any]:
        """Return how the model is to train faster: on some of the patches, or on smaller images."""
        options: dict[str, Any] = {"drop_patches": self.config.drop_patches} if self.config.drop_patches else {}
        if tuple(batch.images.shape[2:]) != self.preprocessing.image_size:
            options["any_size"] = True
        return options

    @property
    def divisible(self) -> bool:
        """Whether nothing is drawn in a pass."""
        return not self.model.config.draws and not self.config.drop_patches
