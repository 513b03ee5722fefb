"""What somebody asked for, made into a complete run: a recipe or the rule, and the settings that were given by hand."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from vitrail.base.errors import ConfigError
from vitrail.base.settings import to_dict
from vitrail.model.build import configure
from vitrail.model.contract import read_model_config
from vitrail.model.patches import Size
from vitrail.runs.choose import Facts, choose
from vitrail.runs.config import DataConfig, RunConfig, read_config, with_settings
from vitrail.runs.data import RunData, usual_side

EVALUATIONS = 10
"""Looks at the held-out images in one run, unless they are many."""
FEWEST_EVALUATIONS = 3
LOOKING = 0.15
"""Share of the training's time for more looks than the fewest; a look at an image takes a third of learning from it."""
LINES = 200
"""Lines of metrics in one run."""
CHECKPOINTS = 20

Recipe = Callable[[Facts], dict[str, Any]]


@dataclass(frozen=True, kw_only=True)
class Request:
    """A run as it was asked for; None stands for: as the recipe or the rule says."""

    recipe: Recipe = choose
    model: str | None = None
    """One of the paper's models."""
    image_size: Size | None = None
    channels: int | None = None
    steps: int | None = None
    epochs: float | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Any setting by its path, such as schedule.peak."""


def complete(request: Request, data_config: DataConfig, data: RunData) -> RunConfig:
    """Fill in everything that was not asked for."""
    facts = facts_of(data, request.channels)
    settings = _with_model(request.recipe(facts), request, facts)
    return fill(settings, data_config, data, steps=request.steps, epochs=request.epochs, changes=dict(request.settings))


def fill(
    settings: dict[str, Any],
    data_config: DataConfig,
    data: RunData,
    *,
    steps: int | None,
    epochs: float | None,
    changes: dict[str, Any],
    evaluations: int = EVALUATIONS,
) -> RunConfig:
    """Give a recipe's settings their length and whatever was said by hand, and make a run of them."""
    settings["batch"] = changes.get("batch", settings["batch"])
    if not isinstance(settings["batch"], int) or settings["batch"] < 1:
        raise ConfigError(f"batch is {settings['batch']!r}, but must be a whole number of images, at least 1.")
    if epochs is not None:
        steps = max(round(epochs * len(data.train) / settings["batch"]), 1)
    settings = _with_length(settings, int(settings["steps"]) if steps is None else steps)
    steps = settings["steps"]
    settings = {
        "data": to_dict(data.described(data_config)),
        "evaluate_every": evaluate_every(steps, settings["batch"], data.held_out, evaluations),
        "log_every": max(steps // LINES, 1),
        "execution": {"checkpoint_every": max(steps // CHECKPOINTS, 1)},
    } | settings
    return read_config(with_settings(settings, changes), "the settings of this run")


def evaluate_every(steps: int, batch: int, held: int, most: int = EVALUATIONS) -> int:
    """Return after how many steps a run looks at its held-out images; the last look is at its end."""
    affordable = int(LOOKING * steps * batch / (max(held, 1) / 3))
    looks = min(max(affordable, FEWEST_EVALUATIONS), most)
    return -(-steps // looks)


def facts_of(data: RunData, channels: int | None = None) -> Facts:
    """Look at the data as the rules do."""
    return Facts(
        images=len(data.train),
        classes=data.classes,
        channels=data.train.channels if channels is None else channels,
        side=usual_side(data.train),
    )


def _with_length(settings: dict[str, Any], steps: int) -> dict[str, Any]:
    """Set the number of steps; a run that is shorter than the recipe's warms up and cools down for shorter too."""
    shorter = min(steps / settings["steps"], 1.0)
    schedule = dict(settings["schedule"])
    for name in ("warmup_steps", "cooldown_steps"):
        schedule[name] = round(schedule[name] * shorter)
    return settings | {"steps": steps, "schedule": schedule}


def _with_model(settings: dict[str, Any], request: Request, facts: Facts) -> dict[str, Any]:
    """Put the asked model and image size in place of the recipe's."""
    own = settings["preprocessing"]["image_size"]
    size = request.image_size or (own[0], own[1])
    pixels = settings["preprocessing"] | {"image_size": list(size)}
    changed = settings | {"preprocessing": pixels}
    if request.model is not None:
        config = configure(request.model, image_size=size, num_classes=facts.classes, channels=facts.channels)
        config = config.regularised_like(read_model_config(settings["model"]))
        return changed | {"model": to_dict(config)}
    return changed | {"model": settings["model"] | {"image_size": list(size)}}
