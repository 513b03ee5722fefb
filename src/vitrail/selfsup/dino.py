"""DINO: a student learns to answer for every view of an image what its own slow copy answers for the large ones.

    large views -> teacher -> centred, sharpened answers
    all views   -> student -> answers                       (Caron et al., 2021)

The teacher is the average of the students on the way, and is what the run saves.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor, nn

from vitrail.base.errors import ConfigError
from vitrail.data.augment.settings import Augmentation
from vitrail.data.batch import Batch, View
from vitrail.data.transforms import normalise
from vitrail.model.contract import Model
from vitrail.model.family import ModelConfig
from vitrail.model.patches import Size, size_text
from vitrail.selfsup.dino_head import DinoHead
from vitrail.selfsup.dino_loss import Seen, dino_loss, entropy, teacher_answers, temperature_at
from vitrail.selfsup.features import spread, view_features
from vitrail.selfsup.momentum import follow, momentum_at, slow_copy
from vitrail.selfsup.objective import SelfSupervised, SelfSupervisedConfig
from vitrail.training.learner import Task

LARGE = 2
"""Views that the teacher sees."""
LOCAL_SHARE = 3 / 7
"""Side of a local view beside that of a large one: 96 of 224 pixels."""


@dataclass(frozen=True, kw_only=True)
class DinoConfig(SelfSupervisedConfig, kind="dino"):
    """Views, head, teacher and temperatures; shares are of all steps of the run."""

    second: Augmentation = field(default_factory=Augmentation)
    """Random changes of the second large view; those of the first are `augmentation`."""
    local: Augmentation = field(default_factory=lambda: Augmentation(area=(0.05, 0.4)))
    """Random changes of the local views."""
    local_views: int = 8
    """Local views of each image."""
    local_size: Size | None = None
    """Height and width of a local view, in pixels; None for three sevenths of the image, in whole patches."""
    prototypes: int = 65_536
    """Outputs K of the head; fewer for small data."""
    hidden: int = 2048
    """Width of the head's hidden layers."""
    bottleneck: int = 256
    """Width of the head before the prototypes."""
    momentum: float = 0.996
    """Part of the teacher that stays in the first update; it rises to 1 by a cosine."""
    student_temperature: float = 0.1
    """What the student's scores are divided by."""
    teacher_temperature: float = 0.04
    """What the teacher's are divided by at first; less is sharper."""
    teacher_temperature_end: float = 0.07
    """What they are divided by after the warm-up."""
    temperature_warmup: float = 0.1
    """Share of the steps in which that temperature rises."""
    centre_momentum: float = 0.9
    """Part of the centre that stays in an update."""
    frozen_prototypes: float = 0.01
    """Share of the steps, from the first, in which the prototypes stay as they are."""

    def __post_init__(self) -> None:
        """Refuse what cannot be learned."""
        super().__post_init__()
        for name, least in (("prototypes", 2), ("hidden", 1), ("bottleneck", 2), ("local_views", 0)):
            if getattr(self, name) < least:
                raise ConfigError(f"{name} is {getattr(self, name)}, but must be at least {least}.")
        for name in ("student_temperature", "teacher_temperature", "teacher_temperature_end"):
            if not getattr(self, name) > 0:
                raise ConfigError(f"{name} is {getattr(self, name)}, but must be above 0.")
        for name in ("momentum", "centre_momentum", "temperature_warmup", "frozen_prototypes"):
            if not 0 <= getattr(self, name) < 1:
                raise ConfigError(f"{name} is {getattr(self, name)}, but must be from 0 to below 1.")
        for name in ("second", "local"):
            if getattr(self, name).mixes:
                raise ConfigError(f"objective.{name} mixes images, but a view shows one; leave mixup and cutmix at 0.")

    def local_side(self, model: ModelConfig) -> Size:
        """Return the size of local views."""
        if self.local_size is not None:
            return self.local_size
        height, width = (
            max(round(LOCAL_SHARE * cells), 1) * (side // cells)
            for side, cells in zip(model.image_size, model.grid or model.image_size, strict=True)
        )
        return height, width

    def views(self, model: ModelConfig) -> tuple[View, ...]:
        """Return the second large view, and the local ones."""
        large = View(augmentation=self.second, image_size=model.image_size)
        return (large, *[View(augmentation=self.local, image_size=self.local_side(model))] * self.local_views)

    def flops_factor(self, model: ModelConfig) -> float:
        """Count the student's passes over all views, and the teacher's over two without a gradient."""
        height, width = self.local_side(model)
        local = height * width / (model.image_size[0] * model.image_size[1])
        return LARGE + self.local_views * local + LARGE / 3

    def activations_factor(self, model: ModelConfig) -> float:
        """Count the student's views; the teacher keeps nothing."""
        return self.flops_factor(model) - LARGE / 3

    def shrunk(self) -> "DinoConfig":
        """Return few local views and a small head."""
        return replace(self, local_views=2, prototypes=64, hidden=32, bottleneck=16)

    @property
    def summary(self) -> str:
        """Name the views and the outputs."""
        return f"{LARGE} large and {self.local_views} local views, {self.prototypes:,} prototypes"

    def check(self, model: ModelConfig, sizes: Sequence[Size]) -> None:
        """Refuse a model that does not take the local views."""
        local = self.local_side(model)
        if any(small > large for small, large in zip(local, model.image_size, strict=True)):
            raise ConfigError(
                f"local views of {size_text(local)} are larger than the images of {size_text(model.image_size)}; "
                "choose a smaller `objective.local_size`, or larger images."
            )
        other = [local] if self.local_views and local != model.image_size else []
        super().check(model, [*sizes, *other])

    def check_batch(self, batch: int, *, whole: bool) -> None:  # noqa: ARG002 - the centre is summed over pieces
        """Refuse one image, whose own scores would be the centre."""
        if batch < 2:
            raise ConfigError(f"DINO compares images with each other, but `batch` is {batch}; choose at least 2.")

    def learner(self, model: Model, task: Task) -> "Dino":
        """Put a head, a teacher and a centre around a model."""
        return Dino(model, self, task)


class Dino(SelfSupervised):
    """A student, its teacher, and the centre of the teacher's scores."""

    centre: Tensor
    total: Tensor
    """The teacher's scores of this step, summed over the images of all ranks, and their number."""

    def __init__(self, model: Model, config: DinoConfig, task: Task) -> None:
        super().__init__(model)
        self.config, self.preprocessing, self.ranks = config, task.preprocessing, task.ranks
        self.threads = task.threads
        width, prototypes = model.config.feature_width, config.prototypes
        self.head = DinoHead(width, hidden=config.hidden, bottleneck=config.bottleneck, prototypes=prototypes)
        self.teacher, self.teacher_head = slow_copy(model), slow_copy(self.head)
        self.register_buffer("centre", torch.zeros(prototypes))
        self.register_buffer("total", torch.zeros(prototypes + 1), persistent=False)
        self.temperature = config.teacher_temperature

    @property
    def saved(self) -> Model:
        """The teacher."""
        return self.teacher

    def train(self, mode: bool = True) -> "Dino":
        """Leave the teacher in evaluation mode: nothing is dropped from its answers."""
        super().train(mode)
        self.teacher.eval()
        self.teacher_head.eval()
        return self

    def before_step(self, step: int, steps: int) -> None:
        """Set the teacher's temperature, and forget sums of a step that was passed over."""
        config, done = self.config, step / steps
        self.temperature = temperature_at(
            config.teacher_temperature, config.teacher_temperature_end, config.temperature_warmup, done
        )
        self.total.zero_()

    def forward(self, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        """Compare the student's answers with the teacher's, and add up the teacher's scores for the centre."""
        views = [normalise(view, self.preprocessing) for view in batch.views]
        answers, figures = self.teach(views[:LARGE])
        features = view_features(self.model, views, threads=self.threads)
        scores = self.head(features)
        loss = dino_loss(scores.unflatten(0, (len(views), -1)), answers, self.config.student_temperature)
        figures["feature_spread"] = spread(features[: len(batch)], self.ranks)
        return loss, {name: value * len(batch) for name, value in figures.items()}

    @torch.no_grad()
    def teach(self, views: Sequence[Tensor]) -> tuple[Seen, dict[str, Tensor]]:
        """Return the teacher's answers for the large views, and their entropy: of each, and of their mean."""
        scores = self.teacher_head(view_features(self.teacher, views, threads=self.threads)).float()
        answers = teacher_answers(scores, self.centre, self.temperature)
        sums = self.ranks.sum(torch.cat([scores.sum(0), answers.sum(0), scores.new_tensor([len(scores)])]))
        summed, answered, count = sums.split([len(self.centre), len(self.centre), 1])
        self.total += torch.cat([summed, count])
        figures = {"teacher_entropy": entropy(answers).mean(), "mean_entropy": entropy(answered / count)}
        return answers.unflatten(0, (len(views), -1)), figures

    def adjust_gradients(self, step: int, steps: int) -> None:
        """Leave the prototypes as they are at first, while everything else is still random."""
        if step < self.config.frozen_prototypes * steps:
            self.head.prototypes.weight.grad = None

    def after_step(self, step: int, steps: int) -> None:
        """Let teacher and centre follow."""
        momentum = momentum_at(self.config.momentum, step / steps)
        follow(self.teacher.parameters(), self.model.parameters(), momentum)
        follow(self.teacher_head.parameters(), self.head.parameters(), momentum)
        self.centre.lerp_(self.total[:-1] / self.total[-1], 1 - self.config.centre_momentum)

    def blocks(self) -> list[nn.Module]:
        """Return the blocks of student and teacher, and their heads."""
        slow = [layer.block for layer in self.teacher.layers() if layer.block is not None]
        return [*super().blocks(), *slow, self.head, self.teacher_head]
