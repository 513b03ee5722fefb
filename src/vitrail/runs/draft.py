"""A run before its data are known: what a recipe, or the rule, decides."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from vitrail.base.numbers import check_whole
from vitrail.data.augment.settings import Augmentation
from vitrail.data.preprocessing import Preprocessing
from vitrail.model.family import ModelConfig
from vitrail.runs.config import Stage, StartConfig
from vitrail.training.classification import ClassificationConfig
from vitrail.training.learner import ObjectiveConfig
from vitrail.training.optimizers import OptimizerConfig
from vitrail.training.schedules import Schedule


@dataclass(frozen=True, kw_only=True)
class Facts:
    """The facts that a recipe may use."""

    images: int
    """Training images."""
    classes: int
    channels: int
    side: int
    """The usual short side of the images, in pixels."""


@dataclass(frozen=True, kw_only=True)
class Draft:
    """Settings of a run by the names that `RunConfig` has for them; data, cadence and seed are still missing."""

    model: ModelConfig
    start: StartConfig | None = None
    preprocessing: Preprocessing
    augmentation: Augmentation
    objective: ObjectiveConfig = field(default_factory=ClassificationConfig)
    optimizer: OptimizerConfig
    schedule: Schedule
    batch: int
    steps: int
    averaging: float | None = None
    stages: tuple[Stage, ...] = ()

    def lasting(self, steps: int) -> "Draft":
        """Return the draft with another length; a shorter run also warms up and cools down faster."""
        check_whole("steps", steps)
        share = min(steps / self.steps, 1.0)
        schedule = replace(
            self.schedule,
            warmup_steps=round(self.schedule.warmup_steps * share),
            cooldown_steps=round(self.schedule.cooldown_steps * share),
        )
        return replace(self, steps=steps, schedule=schedule)

    def at_rate(self, peak: float) -> "Draft":
        """Return the draft with another highest learning rate."""
        return replace(self, schedule=replace(self.schedule, peak=peak))

    def with_model(self, config: ModelConfig) -> "Draft":
        """Return the draft for another model, with images of its size."""
        return replace(self, model=config, preprocessing=replace(self.preprocessing, image_size=config.image_size))


Recipe = Callable[[Facts], Draft]
