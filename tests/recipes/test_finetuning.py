"""Every row of Table 4 is a recipe, with the paper's numbers; the table is written down here once more."""

from pathlib import Path

import pytest

import vitrail
from vitrail.base.errors import ConfigError
from vitrail.model.config import ViTConfig
from vitrail.recipes.finetuning import FINETUNING
from vitrail.recipes.names import find_adaptation, find_recipe
from vitrail.recipes.results import TABLE_5
from vitrail.runs.adapt import adapt
from vitrail.runs.draft import Facts
from vitrail.runs.start import open_source

FACTS = Facts(images=5_000, classes=37, channels=3, side=300)
SMALL = ViTConfig(dim=8, depth=1, num_heads=2, mlp_dim=8, patch_size=(32, 32))
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
    recipe = find_adaptation(name)(FACTS, SMALL)
    assert (recipe.steps, recipe.rates, recipe.dev_fraction, recipe.warmup_steps) == TABLE_4[name]
    assert (recipe.batch, recipe.image_size, recipe.averaging) == (512, (384, 384), None)
    assert recipe.augmentation is not None
    assert (recipe.augmentation.crop, recipe.augmentation.area, recipe.augmentation.flip) == (
        "inception",
        (0.05, 1),
        0.5,
    )


@pytest.mark.parametrize("name", TABLE_4)
def test_a_run_of_a_row_is_sgd_with_a_cosine_and_a_new_head(name: str, tmp_path: Path) -> None:
    config = ViTConfig(dim=8, depth=1, num_heads=2, mlp_dim=8, patch_size=(32, 32), representation_size=8, dropout=0.1)
    vitrail.save(vitrail.build(config, seed=0), tmp_path / "model.safetensors")
    source = open_source(str(tmp_path / "model.safetensors"))
    draft = adapt(source, FACTS, find_adaptation(name)(FACTS, SMALL), image_size=None, frozen=False)
    steps, rates, _, warmup = TABLE_4[name]
    assert (draft.steps, draft.batch, draft.averaging) == (steps, 512, None)
    optimizer, schedule = draft.optimizer, draft.schedule
    assert (optimizer.name, optimizer.beta1, optimizer.weight_decay) == ("sgd", 0.9, 0.0)
    assert (optimizer.clip_norm, optimizer.layer_decay, optimizer.frozen) == (1.0, 1.0, ())
    assert (schedule.shape, schedule.end, schedule.warmup_steps) == ("cosine", 0.0, warmup)
    assert schedule.peak in rates
    assert (draft.objective.loss, draft.objective.label_smoothing) == ("softmax", 0.0)
    assert draft.preprocessing.image_size == draft.model.image_size == (384, 384)
    assert isinstance(draft.model, ViTConfig)
    assert (draft.model.representation_size, draft.model.num_classes) == (None, 37)
    assert (draft.augmentation.mixup, draft.augmentation.cutmix) == (0, 0)


def test_imagenet_has_a_recipe_with_polyak_averaging() -> None:
    adaptation = find_adaptation("finetune-imagenet-polyak")(FACTS, SMALL)
    assert (adaptation.averaging, adaptation.image_size, adaptation.steps) == (0.9999, (512, 512), 20_000)
    assert set(FINETUNING) == {*TABLE_4, "finetune-imagenet-polyak"}


def test_a_smoke_twin_is_small() -> None:
    adaptation = find_adaptation("finetune-pets-smoke")(FACTS, SMALL)
    assert (adaptation.steps, adaptation.batch, adaptation.rates, adaptation.image_size) == (6, 8, (0.001, 0.003), None)


def test_recipes_for_another_verb_say_which() -> None:
    with pytest.raises(ConfigError, match=r"finetune-pets is a recipe for fine-tuning.* give it to finetune"):
        find_recipe("finetune-pets")
    with pytest.raises(ConfigError, match=r"imagenet1k-B/16 is a recipe for training.* give it to train"):
        find_adaptation("imagenet1k-B/16")
    with pytest.raises(ConfigError, match="Did you mean finetune-pets"):
        find_adaptation("finetune-pet")


def test_the_cost_of_a_fine_tuning_is_its_arithmetic() -> None:
    # B/16 at 384 px is 55.5 GMACs in the literature (55.48 with all parts counted); 6 FLOPs each, 512 images a step.
    assert FINETUNING["finetune-cifar10"].exaflops == pytest.approx(6 * 55.5e9 * 512 * 10_000 / 1e18, rel=0.02)


# Table 5 typed again: CIFAR-10, CIFAR-100, ImageNet, ReaL, Flowers, Pets; in each B/16, B/32, L/16, L/32, H/14.
TABLE_5_TYPED = {
    "imagenet1k": "98.13 97.77 97.86 97.94 -; 87.13 86.31 86.35 87.07 -; 77.91 73.38 76.53 71.16 -; "
    "83.57 79.56 82.19 77.83 -; 89.49 85.43 89.66 86.36 -; 93.81 92.04 93.64 91.35 -",
    "imagenet21k": "98.95 98.79 99.16 99.13 99.27; 91.67 91.97 93.44 93.04 93.82; 83.97 81.28 85.15 80.99 85.13; "
    "88.35 86.63 88.40 85.65 88.70; 99.38 99.11 99.61 99.19 99.51; 94.43 93.02 94.73 93.09 94.82",
    "jft300m": "99.00 98.61 99.38 99.19 99.50; 91.87 90.49 94.04 92.52 94.55; 84.15 80.73 87.12 84.37 88.04; "
    "88.85 86.27 89.99 88.28 90.33; 99.56 99.27 99.56 99.45 99.68; 95.80 93.40 97.11 95.83 97.56",
}


@pytest.mark.parametrize("data", TABLE_5_TYPED)
def test_table_5_is_there(data: str) -> None:
    tasks = ("cifar10", "cifar100", "imagenet", "real", "flowers", "pets")
    models = ("B/16", "B/32", "L/16", "L/32", "H/14")
    for task, line in zip(tasks, TABLE_5_TYPED[data].split("; "), strict=True):
        typed = dict(zip(models, line.split(), strict=True))
        assert TABLE_5[data][task] == {model: float(share) for model, share in typed.items() if share != "-"}


def test_what_is_published_is_table_5s_of_b_16_from_imagenet_21k() -> None:
    results = {name: recipe.published for name, recipe in FINETUNING.items()}
    assert results == {
        "finetune-imagenet": "83.97% with B/16 from ImageNet-21k",
        "finetune-cifar10": "98.95% with B/16 from ImageNet-21k",
        "finetune-cifar100": "91.67% with B/16 from ImageNet-21k",
        "finetune-pets": "94.43% with B/16 from ImageNet-21k",
        "finetune-flowers": "99.38% with B/16 from ImageNet-21k",
        "finetune-vtab": "",
        "finetune-imagenet-polyak": "",
    }
