"""MoCo v3: a view of an image finds the other view of the same image among those of all images of a batch.

    one view   -> encoder -> projector -> predictor -> query
    the other  -> slow encoder -> slow projector    -> key        (Chen et al., 2021)

Each view is query and key in turn. There is no queue: the other keys of the batch, of all ranks, are the negatives.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import torch
from torch import Tensor, nn

from vitrail.base.errors import ConfigError
from vitrail.base.products import Linear
from vitrail.base.ranks import Ranks
from vitrail.data.augment.settings import Augmentation
from vitrail.data.batch import Batch, View
from vitrail.data.transforms import normalise
from vitrail.model.contract import Model
from vitrail.model.family import ModelConfig
from vitrail.selfsup.batch_norm import BatchNorm
from vitrail.selfsup.features import spread, view_features
from vitrail.selfsup.moco_loss import info_nce
from vitrail.selfsup.momentum import follow, momentum_at, slow_copy
from vitrail.selfsup.objective import SelfSupervised, SelfSupervisedConfig
from vitrail.training.learner import Task

VIEWS = 2
PROJECTOR, PREDICTOR = 3, 2
"""Layers of the two heads."""


@dataclass(frozen=True, kw_only=True)
class MocoConfig(SelfSupervisedConfig, kind="moco"):
    """The second view, the heads, the slow encoder and the temperature.

    The paper's patch projection at its random values is `optimizer.frozen`: embedding.projection.*.
    """

    second: Augmentation = field(default_factory=Augmentation)
    """Random changes of the second view; those of the first are `augmentation`."""
    hidden: int = 4096
    """Width of the heads' hidden layers."""
    outputs: int = 256
    """Width of queries and keys."""
    momentum: float = 0.99
    """Part of the slow encoder that stays in the first update; it rises to 1 by a cosine."""
    temperature: float = 0.2
    """What cosines are divided by."""

    def __post_init__(self) -> None:
        """Refuse what cannot be learned."""
        super().__post_init__()
        for name, least in (("hidden", 1), ("outputs", 2)):
            if getattr(self, name) < least:
                raise ConfigError(f"{name} is {getattr(self, name)}, but must be at least {least}.")
        if not self.temperature > 0:
            raise ConfigError(f"temperature is {self.temperature}, but must be above 0.")
        if not 0 <= self.momentum < 1:
            raise ConfigError(f"momentum is {self.momentum}, but must be from 0 to below 1.")
        if self.second.mixes:
            raise ConfigError("objective.second mixes images, but a view shows one; leave mixup and cutmix at 0.")

    def views(self, model: ModelConfig) -> tuple[View, ...]:
        """Return the second view."""
        return (View(augmentation=self.second, image_size=model.image_size),)

    def flops_factor(self, model: ModelConfig) -> float:  # noqa: ARG002 - the same for every model
        """Count two passes with a gradient, and two without."""
        return VIEWS + VIEWS / 3

    def activations_factor(self, model: ModelConfig) -> float:  # noqa: ARG002 - the same for every model
        """Count the views; the slow encoder keeps nothing."""
        return float(VIEWS)

    def shrunk(self) -> "MocoConfig":
        """Return small heads."""
        return replace(self, hidden=32, outputs=16)

    @property
    def summary(self) -> str:
        """Name what is compared."""
        return f"queries and keys of {self.outputs}, temperature {self.temperature:g}"

    def check_batch(self, batch: int, *, whole: bool) -> None:
        """Refuse a batch without negatives, or one in pieces."""
        if batch < 2:
            raise ConfigError(f"MoCo compares each image with others, but `batch` is {batch}; choose at least 2.")
        if not whole:
            raise ConfigError(
                "MoCo compares all images of a batch, so that a piece of it would have fewer negatives; leave out "
                "`micro_batch`, and choose a smaller `batch` or `recompute` where memory is short."
            )

    def learner(self, model: Model, task: Task) -> "Moco":
        """Put heads and a slow encoder around a model."""
        return Moco(model, self, task)


class Moco(SelfSupervised):
    """An encoder with its heads, and their slow copies."""

    def __init__(self, model: Model, config: MocoConfig, task: Task) -> None:
        super().__init__(model)
        self.config, self.preprocessing, self.ranks = config, task.preprocessing, task.ranks
        self.threads = task.threads
        width, hidden, outputs = model.config.feature_width, config.hidden, config.outputs
        self.projector = make_head((width, *[hidden] * (PROJECTOR - 1), outputs), task.ranks)
        self.predictor = make_head((outputs, *[hidden] * (PREDICTOR - 1), outputs), task.ranks)
        self.slow_model, self.slow_projector = slow_copy(model), slow_copy(self.projector)

    def train(self, mode: bool = True) -> "Moco":
        """Leave the slow encoder in evaluation mode: nothing is dropped of what it sees."""
        super().train(mode)
        self.slow_model.eval()
        return self

    def forward(self, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        """Let each view find the other."""
        views = [normalise(view, self.preprocessing) for view in batch.views]
        features = view_features(self.model, views, threads=self.threads)
        queries = [self.predictor(self.projector(some)) for some in features.chunk(VIEWS)]
        with torch.no_grad():
            slow = view_features(self.slow_model, views, threads=self.threads).chunk(VIEWS)
            keys = [self.ranks.gather(self.slow_projector(some)) for some in slow]
        first = self.ranks.rank * len(batch)
        (one, right), (other, right_too) = (
            info_nce(queries[view], keys[1 - view], self.config.temperature, first=first) for view in range(VIEWS)
        )
        figures = {"found": (right + right_too) / VIEWS}
        figures["feature_spread"] = spread(features[: len(batch)], self.ranks) * len(batch)
        return one + other, figures

    def after_step(self, step: int, steps: int) -> None:
        """Let the slow encoder follow, by the momentum of the next step, as the release does."""
        momentum = momentum_at(self.config.momentum, (step + 1) / steps)
        follow(self.slow_model.parameters(), self.model.parameters(), momentum)
        follow(self.slow_projector.parameters(), self.projector.parameters(), momentum)

    def blocks(self) -> list[nn.Module]:
        """Return the blocks of both encoders, and the heads."""
        slow = [layer.block for layer in self.slow_model.layers() if layer.block is not None]
        return [*super().blocks(), *slow, self.projector, self.slow_projector, self.predictor]


def make_head(widths: Sequence[int], ranks: Ranks) -> nn.Sequential:
    """Return linear layers, each with batch normalisation, and ReLU between; the last normalisation learns nothing."""
    layers: list[nn.Module] = []
    for number, (inputs, outputs) in enumerate(pairwise(widths), start=1):
        last = number == len(widths) - 1
        layers += [Linear(inputs, outputs, bias=False), BatchNorm(outputs, ranks, learned=not last)]
        layers += [] if last else [nn.ReLU(inplace=True)]
    return nn.Sequential(*layers)
