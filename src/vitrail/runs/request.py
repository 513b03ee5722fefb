"""From a request to a complete run: the draft of a recipe or of the rule, its length, and single settings."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from vitrail.base.errors import ConfigError
from vitrail.base.numbers import check_whole
from vitrail.base.settings import to_dict
from vitrail.model.build import configure
from vitrail.model.patches import Size
from vitrail.runs.bounds import MOST_CHANNELS
from vitrail.runs.choose import choose
from vitrail.runs.config import RunConfig, read_config, with_settings
from vitrail.runs.data import RunData, usual_side
from vitrail.runs.data_config import DataConfig
from vitrail.runs.draft import Draft, Facts, Recipe
from vitrail.runs.execution import Execution
from vitrail.training.learner import ObjectiveConfig

EVALUATIONS = 10
"""Evaluations in one run, unless the held-out images are many."""
FEWEST_EVALUATIONS = 3
EVALUATING = 0.15
"""Share of the training's time for more evaluations than the fewest; an image takes a third of learning from it."""
LINES = 200
"""Lines of metrics in one run."""
CHECKPOINTS = 20


@dataclass(frozen=True, kw_only=True)
class Request:
    """A run as requested; None leaves a setting to the recipe or the rule."""

    recipe: Recipe = choose
    labels: bool = True
    """Whether the model learns the classes of the data; without them it has no head."""
    model: str | None = None
    """One of the paper's models."""
    image_size: Size | None = None
    channels: int | None = None
    steps: int | None = None
    epochs: float | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Any setting by its path, such as schedule.peak."""


def needs_labels(changes: Mapping[str, Any]) -> bool:
    """Return whether a run with these changes to its recipe needs labels; recipes do."""
    kind = ObjectiveConfig.members.get(changes.get("objective.kind", "classification"))
    return kind is None or bool(kind.needs_labels)


def complete(request: Request, data_config: DataConfig, data: RunData) -> RunConfig:
    """Fill in everything that was not requested."""
    if request.channels is not None:  # before a mean is made for each
        check_whole("`channels`", request.channels, most=MOST_CHANNELS)
    facts = facts_of(data, request.channels)
    facts = facts if request.labels else replace(facts, classes=0)
    size, changes = request.image_size, dict(request.settings)
    draft = request.recipe(facts)
    if request.model is not None:
        size = size or draft.preprocessing.image_size
        config = configure(request.model, image_size=size, num_classes=facts.classes, channels=facts.channels)
        draft = draft.with_model(config.regularised_like(draft.model))
    elif size is not None:  # by path, so that patches that fit it can be set beside it
        changes = {"model.image_size": size, "preprocessing.image_size": size} | changes
    return fill(draft, data_config, data, steps=request.steps, epochs=request.epochs, changes=changes)


def fill(
    draft: Draft,
    data_config: DataConfig,
    data: RunData,
    *,
    steps: int | None,
    epochs: float | None,
    changes: Mapping[str, Any],
    evaluations: int = EVALUATIONS,
) -> RunConfig:
    """Make a run from a draft: add its data, length and cadence, then the single settings, by path.

    The changes are made before the run is checked: a short run may need a shorter warm-up.
    """
    batch = changes.get("batch", draft.batch)
    if not isinstance(batch, int) or batch < 1:
        raise ConfigError(f"batch is {batch!r}, but must be a whole number of images, at least 1.")
    if epochs is not None:
        steps = max(round(epochs * len(data.train) / batch), 1)
    draft = draft if steps is None else draft.lasting(steps)
    settings = to_dict(draft) | {
        "data": to_dict(data_config),
        "facts": to_dict(data.facts),
        "evaluate_every": evaluate_every(draft.steps, batch, data.held_out, evaluations),
        "log_every": max(draft.steps // LINES, 1),
        "execution": to_dict(Execution(checkpoint_every=max(draft.steps // CHECKPOINTS, 1))),
    }
    return read_config(with_settings(settings, changes), "the settings of this run")


def evaluate_every(steps: int, batch: int, images: int, most: int = EVALUATIONS) -> int:
    """Return the steps between evaluations on N images; the last is at the end of the run."""
    affordable = int(EVALUATING * steps * batch / (max(images, 1) / 3))
    evaluations = min(max(affordable, FEWEST_EVALUATIONS), most)
    return -(-steps // evaluations)


def facts_of(data: RunData, channels: int | None = None) -> Facts:
    """Return the facts that recipes and the rule use."""
    return Facts(
        images=len(data.train),
        classes=data.classes,
        channels=data.train.channels if channels is None else channels,
        side=usual_side(data.train),
    )
