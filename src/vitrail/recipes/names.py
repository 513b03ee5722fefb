"""Recipes by name, and their smoke twins: the same kind of run, so small that it takes a second."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from vitrail.base.errors import ConfigError, did_you_mean
from vitrail.base.settings import from_dict, to_dict
from vitrail.model.config import BackboneConfig, ViTConfig
from vitrail.model.patches import Size, size_text
from vitrail.model.resnet import ResNetConfig
from vitrail.recipes.finetuning import FINETUNING
from vitrail.recipes.pretraining import PRETRAINING
from vitrail.runs.adapt import Adaptation, choose_adaptation
from vitrail.runs.choose import Facts, choose
from vitrail.runs.request import Recipe

SMALL_DATA = "small-data"
SMOKE = "-smoke"
SMOKE_SIZE = (32, 32)


def recipe_names() -> list[str]:
    """List every recipe but the smoke twins."""
    return [SMALL_DATA, *PRETRAINING, *FINETUNING]


def find_recipe(name: str | None, image_size: Size | None = None) -> Recipe:
    """Return a recipe, or the rule when none is named; NAME-smoke is its small twin.

    A recipe of the paper is for one image size, and refuses another.
    """
    if name in (None, SMALL_DATA):
        return choose
    base = str(name).removesuffix(SMOKE)
    if base in FINETUNING:
        raise ConfigError(f"{name} is a recipe for fine-tuning; run it with: {FINETUNING[base].command}")
    if base not in PRETRAINING:
        known = recipe_names()
        raise ConfigError(f"there is no recipe {name!r}; `vitrail recipes` lists them.{did_you_mean(base, known)}")
    wanted = SMOKE_SIZE if str(name).endswith(SMOKE) else (224, 224)
    if image_size not in (None, wanted):
        raise ConfigError(
            f"the recipe {name} is for images of {size_text(wanted)}, but --image-size is {size_text(image_size)}; "
            "leave it out, or change the size of a recipe of your own with --config."
        )
    return smoke(PRETRAINING[base]) if str(name).endswith(SMOKE) else PRETRAINING[base]


def find_adaptation(name: str | None) -> Callable[[Facts], Adaptation]:
    """Return how a model is adapted, by a recipe of Table 4 or by the rule when none is named."""
    if name is None:
        return choose_adaptation
    base = name.removesuffix(SMOKE)
    if base in PRETRAINING or base == SMALL_DATA:
        raise ConfigError(f"{name} is a recipe for training; run it with: vitrail train DATA --recipe {name}")
    if base not in FINETUNING:
        known = ", ".join(FINETUNING)
        raise ConfigError(f"there is no recipe {name!r}; choose one of {known}.{did_you_mean(base, FINETUNING)}")
    adaptation = FINETUNING[base].adaptation()
    if name.endswith(SMOKE):
        adaptation = replace(adaptation, steps=6, batch=8, warmup_steps=2, rates=adaptation.rates[:2], image_size=None)
    return lambda _: adaptation


def smoke(recipe: Recipe) -> Recipe:
    """Make a recipe tiny: a model of the same kind, 32 pixels, 8 images a step, 6 steps; all else stays."""

    def small(facts: Facts) -> dict[str, Any]:
        settings = recipe(facts)
        if settings.get("vit"):
            settings["vit"] = to_dict(_tiny_vit(from_dict(ViTConfig, settings["vit"])))
        else:
            settings["resnet"] = to_dict(_tiny_resnet(from_dict(ResNetConfig, settings["resnet"])))
        settings["preprocessing"] = settings["preprocessing"] | {"image_size": list(SMOKE_SIZE)}
        settings["schedule"] = settings["schedule"] | {"warmup_steps": 2}
        return settings | {"batch": 8, "steps": 6}

    return small


def _tiny_vit(config: ViTConfig) -> ViTConfig:
    backbone = config.backbone and BackboneConfig(
        blocks=tuple(1 for _ in config.backbone.blocks), width=8, norm_groups=8
    )
    settings = to_dict(config) | {
        "dim": 16,
        "depth": 2,
        "num_heads": 2,
        "mlp_dim": 32,
        "image_size": SMOKE_SIZE,
        "patch_size": (1, 1) if backbone else (8, 8),
        "representation_size": config.representation_size and 16,
    }
    return ViTConfig(**settings | {"backbone": backbone})


def _tiny_resnet(config: ResNetConfig) -> ResNetConfig:
    settings = to_dict(config) | {"blocks": tuple(1 for _ in config.blocks), "image_size": SMOKE_SIZE}
    return ResNetConfig(**settings | {"width": 8, "norm_groups": 8})
