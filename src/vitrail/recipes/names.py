"""Recipes by name, and their smoke twins: the same kind of run, small enough to take a second."""

from collections.abc import Callable
from dataclasses import replace

from vitrail.base.errors import ConfigError, did_you_mean
from vitrail.model.patches import Size, size_text
from vitrail.recipes.backbone import NAME, SIDE, backbone
from vitrail.recipes.finetuning import FINETUNING
from vitrail.recipes.pretraining import PRETRAINING
from vitrail.recipes.unlabelled import UNLABELLED
from vitrail.runs.adapt import Adaptation, choose_adaptation
from vitrail.runs.choose import choose
from vitrail.runs.choose_pretraining import find_rule
from vitrail.runs.draft import Draft, Facts, Recipe
from vitrail.runs.start import Source

SMALL_DATA = "small-data"
SMOKE = "-smoke"
SMOKE_SIZE = (32, 32)
TRAINING: dict[str, Recipe] = {NAME: backbone, **PRETRAINING}
"""Recipes of `train`, by name."""


def recipe_names() -> list[str]:
    """List every recipe but the smoke twins."""
    return [SMALL_DATA, NAME, *PRETRAINING, *UNLABELLED, *FINETUNING]


def find_recipe(name: str | None, image_size: Size | None = None) -> Recipe:
    """Return a recipe, or the rule when `name` is None; NAME-smoke is its small twin.

    Such a recipe is for one image size, and refuses another.
    """
    if name in (None, SMALL_DATA):
        return choose
    base = str(name).removesuffix(SMOKE)
    if base in FINETUNING:
        raise ConfigError(f"{name} is a recipe for fine-tuning, not for training; give it to finetune as `recipe`.")
    if base in UNLABELLED:
        raise ConfigError(f"{name} is a recipe for images without labels; give it to pretrain as `recipe`.")
    if base not in TRAINING:
        names = recipe_names()
        raise ConfigError(f"there is no recipe {name!r}; `vitrail recipes` lists them.{did_you_mean(base, names)}")
    size = SMOKE_SIZE if str(name).endswith(SMOKE) else (SIDE, SIDE) if base == NAME else (224, 224)
    if image_size not in (None, size):
        raise ConfigError(
            f"the recipe {name} is for images of {size_text(size)}, but `image_size` is {size_text(image_size)}; "
            "leave it out, or change the settings of a stored run with `config`."
        )
    return smoke(TRAINING[base]) if str(name).endswith(SMOKE) else TRAINING[base]


def find_pretraining(name: str | None, objective: str | None, image_size: Size | None = None) -> Recipe:
    """Return a recipe for images without labels, or the rule of an objective when `name` is None."""
    if name is None:
        return find_rule(objective)
    base = name.removesuffix(SMOKE)
    if base in TRAINING or base in FINETUNING or base == SMALL_DATA:
        raise ConfigError(f"{name} is a recipe that needs labels; give it to train or finetune as `recipe`.")
    if base not in UNLABELLED:
        names = ", ".join(UNLABELLED)
        raise ConfigError(f"there is no recipe {name!r}; choose one of {names}.{did_you_mean(base, UNLABELLED)}")
    recipe = UNLABELLED[base]
    if objective not in (None, recipe.kind):
        raise ConfigError(f"the recipe {name} is for `objective` {recipe.kind!r}, not {objective!r}; leave one out.")
    size = SMOKE_SIZE if name.endswith(SMOKE) else recipe.image_size
    if image_size not in (None, size):
        raise ConfigError(
            f"the recipe {name} is for images of {size_text(size)}, but `image_size` is {size_text(image_size)}; "
            "leave it out, or change the settings of a stored run with `config`."
        )
    return smoke(recipe) if name.endswith(SMOKE) else recipe


def find_adaptation(name: str | None) -> Callable[[Facts, Source], Adaptation]:
    """Return how a model is adapted: by a recipe of Table 4, or by the rule when `name` is None."""
    if name is None:
        return choose_adaptation
    base = name.removesuffix(SMOKE)
    if base in TRAINING or base in UNLABELLED or base == SMALL_DATA:
        raise ConfigError(f"{name} is a recipe for training, not for fine-tuning; give it to train as `recipe`.")
    if base not in FINETUNING:
        names = ", ".join(FINETUNING)
        raise ConfigError(f"there is no recipe {name!r}; choose one of {names}.{did_you_mean(base, FINETUNING)}")
    adaptation = FINETUNING[base].adaptation()
    if name.endswith(SMOKE):
        adaptation = replace(adaptation, steps=6, batch=8, warmup_steps=2, rates=adaptation.rates[:2], image_size=None)
    return lambda *_: adaptation


def smoke(recipe: Recipe) -> Recipe:
    """Make a recipe tiny: a model of the same kind, 32 pixels, 8 images a step, 6 steps; all else stays."""

    def small(facts: Facts) -> Draft:
        draft = recipe(facts)
        draft = draft.with_model(draft.model.shrunk(SMOKE_SIZE))
        schedule = replace(draft.schedule, warmup_steps=2)
        objective = draft.objective.shrunk()
        return replace(draft, objective=objective, schedule=schedule, batch=8, steps=6, stages=())

    return small
