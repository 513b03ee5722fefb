"""From a request to a complete run: the draft of a recipe or of the rule, its length, and single settings."""

from dataclasses import dataclass, field, fields, replace

from vitrail.base.numbers import check_whole
from vitrail.model.build import configure
from vitrail.model.patches import Size
from vitrail.runs.bounds import MOST_CHANNELS
from vitrail.runs.changes import Changes, Outline
from vitrail.runs.choose import choose
from vitrail.runs.config import RunConfig
from vitrail.runs.data import RunData, usual_side
from vitrail.runs.data_config import DataConfig
from vitrail.runs.draft import Draft, Facts, Recipe
from vitrail.runs.execution import Execution

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
    changes: Changes = field(default_factory=Changes)
    """Single settings."""


def complete(request: Request, data_config: DataConfig, data: RunData) -> RunConfig:
    """Fill in everything that was not requested."""
    if request.channels is not None:  # before a mean is made for each
        check_whole("`channels`", request.channels, most=MOST_CHANNELS)
    facts = facts_of(data, request.channels)
    facts = facts if request.labels else replace(facts, classes=0)
    size, draft = request.image_size, request.recipe(facts)
    if request.model is not None or size not in (None, draft.preprocessing.image_size):
        draft = replace(draft, stages=())  # the recipe's are made for its own images and patches
    if request.model is not None:
        size = size or draft.preprocessing.image_size
        config = configure(request.model, image_size=size, num_classes=facts.classes, channels=facts.channels)
        draft, size = draft.with_model(config.regularised_like(draft.model)), None
    return fill(draft, data_config, data, request.changes, steps=request.steps, epochs=request.epochs, image_size=size)


def fill(
    draft: Draft,
    data_config: DataConfig,
    data: RunData,
    changes: Changes,
    *,
    steps: int | None,
    epochs: float | None = None,
    image_size: Size | None = None,
    evaluations: int = EVALUATIONS,
) -> RunConfig:
    """Make a run from a draft: add its data, length and cadence, then the single settings."""
    batch = changes.batch_of(draft)
    if epochs is not None:
        steps = max(round(epochs * len(data.train) / batch), 1)
    draft = draft if steps is None else draft.lasting(steps)
    outline = Outline(
        **{field.name: getattr(draft, field.name) for field in fields(draft)},
        data=data_config,
        facts=data.facts,
        evaluate_every=evaluate_every(draft.steps, batch, data.held_out, evaluations),
        log_every=max(draft.steps // LINES, 1),
        execution=Execution(checkpoint_every=max(draft.steps // CHECKPOINTS, 1)),
    )
    return changes.applied(outline, image_size=image_size)


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
