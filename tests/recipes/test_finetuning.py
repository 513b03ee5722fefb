"""Every row of Table 4 is a recipe, with the paper's numbers; the table is written down here once more."""

import pytest

from vitrail.base.errors import ConfigError
from vitrail.recipes.finetuning import FINETUNING
from vitrail.recipes.names import find_adaptation, find_recipe
from vitrail.recipes.results import TABLE_5
from vitrail.runs.choose import Facts

FACTS = Facts(images=5_000, classes=37, channels=3, side=300)
TABLE_4 = {
    "finetune-imagenet": (20_000, (0.003, 0.01, 0.03, 0.06), 0.01, 500),
    "finetune-cifar10": (10_000, (0.001, 0.003, 0.01, 0.03), 0.02, 500),
    "finetune-cifar100": (10_000, (0.001, 0.003, 0.01, 0.03), 0.02, 500),
    "finetune-pets": (500, (0.001, 0.003, 0.01, 0.03), 0.1, 100),
    "finetune-flowers": (500, (0.001, 0.003, 0.01, 0.03), 0.1, 100),
    "finetune-vtab": (2_500, (0.01,), 0.2, 500),
}


@pytest.mark.parametrize("name", TABLE_4)
def test_a_recipe_has_the_numbers_of_its_row(name: str) -> None:
    found = find_adaptation(name)(FACTS)
    assert (found.steps, found.rates, found.dev_fraction, found.warmup_steps) == TABLE_4[name]
    assert (found.batch, found.image_size, found.averaging) == (512, (384, 384), None)
    assert found.augmentation is not None
    assert (found.augmentation.crop, found.augmentation.area, found.augmentation.flip) == ("inception", (0.05, 1), 0.5)


def test_imagenet_has_a_recipe_with_polyak_averaging() -> None:
    found = find_adaptation("finetune-imagenet-polyak")(FACTS)
    assert (found.averaging, found.image_size, found.steps) == (0.9999, (512, 512), 20_000)
    assert set(FINETUNING) == {*TABLE_4, "finetune-imagenet-polyak"}


def test_a_smoke_twin_is_small() -> None:
    found = find_adaptation("finetune-pets-smoke")(FACTS)
    assert (found.steps, found.batch, found.rates, found.image_size) == (6, 8, (0.001, 0.003), None)


def test_recipes_for_another_verb_say_which() -> None:
    with pytest.raises(ConfigError, match="vitrail finetune DATA --from MODEL --recipe finetune-pets"):
        find_recipe("finetune-pets")
    with pytest.raises(ConfigError, match="vitrail train DATA --recipe imagenet1k-B/16"):
        find_adaptation("imagenet1k-B/16")
    with pytest.raises(ConfigError, match="Did you mean finetune-pets"):
        find_adaptation("finetune-pet")


def test_the_cost_of_a_fine_tuning_is_its_arithmetic() -> None:
    # B/16 at 384 px is 55.5 GMACs in the literature (55.48 with all parts counted); 6 FLOPs each, 512 images a step.
    assert FINETUNING["finetune-cifar10"].exaflops == pytest.approx(6 * 55.5e9 * 512 * 10_000 / 1e18, rel=0.02)


def test_table_5_has_the_paper_s_averages() -> None:
    """Rows of the paper that can be added up: ImageNet-21k, B/16, over its six tasks."""
    assert sum(TABLE_5["imagenet21k"][task]["B/16"] for task in TABLE_5["imagenet21k"]) == pytest.approx(556.75)
    assert "H/14" not in TABLE_5["imagenet1k"]["cifar10"]
    assert TABLE_5["jft300m"]["imagenet"]["H/14"] == 88.04
    assert FINETUNING["finetune-pets"].published == "94.43% with B/16 from ImageNet-21k"
