"""What somebody asked for, made into a complete run: a recipe or the rule, and the settings that were given by hand."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from vitrail.base.settings import to_dict
from vitrail.model.build import configure
from vitrail.model.config import ViTConfig
from vitrail.model.patches import Size
from vitrail.runs.choose import Facts, choose
from vitrail.runs.config import DataConfig, RunConfig, read_config, with_settings
from vitrail.runs.data import RunData, usual_side

EVALUATIONS = 10
"""Looks at the held-out images in one run."""
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
    channels = request.channels or data.train.channels
    facts = Facts(images=len(data.train), classes=data.classes, channels=channels, side=usual_side(data.train))
    settings = _with_model(request.recipe(facts), request, facts)
    settings["batch"] = request.settings.get("batch", settings["batch"])
    settings = _with_length(settings, _steps(request, settings, facts.images))
    steps = settings["steps"]
    settings = {
        "data": to_dict(data.described(data_config)),
        "evaluate_every": max(steps // EVALUATIONS, 1),
        "log_every": max(steps // LINES, 1),
        "execution": {"checkpoint_every": max(steps // CHECKPOINTS, 1)},
    } | settings
    return read_config(with_settings(settings, dict(request.settings)), "the settings of this run")


def _with_length(settings: dict[str, Any], steps: int) -> dict[str, Any]:
    """Set the number of steps; a run that is shorter than the recipe's warms up and cools down for shorter too."""
    shorter = min(steps / settings["steps"], 1.0)
    schedule = dict(settings["schedule"])
    for name in ("warmup_steps", "cooldown_steps"):
        schedule[name] = round(schedule[name] * shorter)
    return settings | {"steps": steps, "schedule": schedule}


def _steps(request: Request, settings: Mapping[str, Any], images: int) -> int:
    if request.steps is not None:
        return request.steps
    if request.epochs is not None:
        return max(round(request.epochs * images / settings["batch"]), 1)
    return int(settings["steps"])


def _with_model(settings: dict[str, Any], request: Request, facts: Facts) -> dict[str, Any]:
    """Put the asked model and image size in place of the recipe's."""
    own = settings["preprocessing"]["image_size"]
    size = request.image_size or (own[0], own[1])
    pixels = settings["preprocessing"] | {"image_size": list(size)}
    changed = settings | {"preprocessing": pixels}
    if request.model is not None:
        config = configure(request.model, image_size=size, num_classes=facts.classes, channels=facts.channels)
        kind, other = ("vit", "resnet") if isinstance(config, ViTConfig) else ("resnet", "vit")
        kept = {"drop_patches": 0.0} if kind == "resnet" else {}
        return changed | {kind: to_dict(config), other: None} | kept
    kind = "vit" if settings.get("vit") else "resnet"
    return changed | {kind: settings[kind] | {"image_size": list(size)}}
