"""Every row of Table 3 is a recipe, with the paper's numbers, and a small twin of it runs."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.train.making import CLASSES, made_dataset, made_loop
from vitrail.base.errors import ConfigError
from vitrail.base.ranks import Ranks
from vitrail.recipes.names import find_recipe, recipe_names
from vitrail.recipes.paper import TABLE_3
from vitrail.recipes.pretraining import PRETRAINING
from vitrail.runs.choose import Facts
from vitrail.runs.config import DataConfig
from vitrail.runs.data import RunData
from vitrail.runs.folder import RunFolder
from vitrail.runs.request import Request, complete
from vitrail.runs.train import Run

IMAGENET = Facts(images=1_281_167, classes=1000, channels=3, side=375)


def test_there_is_a_recipe_for_each_model_and_length_of_table_3() -> None:
    assert len(PRETRAINING) == sum(len(row.models) * len(row.epochs) for row in TABLE_3) == 27


@pytest.mark.parametrize("name", PRETRAINING)
def test_a_recipe_has_the_numbers_of_its_row(name: str) -> None:
    recipe = PRETRAINING[name]
    settings = recipe(IMAGENET)
    assert settings["batch"] == 4096
    assert settings["steps"] == round(1_281_167 * recipe.epochs / 4096)
    assert settings["schedule"]["peak"] == recipe.row.learning_rate
    assert settings["schedule"]["shape"] == recipe.row.decay
    assert settings["schedule"]["warmup_steps"] == 10_000
    assert settings["optimizer"]["weight_decay"] == recipe.row.weight_decay
    assert (settings["optimizer"]["beta1"], settings["optimizer"]["beta2"]) == (0.9, 0.999)
    assert settings["optimizer"]["clip_norm"] == (None if recipe.row.data == "jft300m" else 1.0)
    assert settings["loss"]["name"] == ("softmax" if recipe.row.data == "imagenet1k" else "sigmoid")
    assert settings["augmentation"]["area"] == [0.05, 1.0]
    kind = "vit" if "vit" in settings else "resnet"
    assert settings[kind]["head_bias"] == (0.0 if recipe.row.data == "imagenet1k" else -10.0)
    if "vit" in settings:
        assert settings["vit"]["dropout"] == recipe.row.dropout
        assert settings["vit"]["representation_size"] == settings["vit"]["dim"]


def test_another_model_keeps_the_heads_and_the_dropout_of_a_recipe() -> None:
    data = RunData(train=made_dataset(24), held=None)
    small = Request(recipe=find_recipe("imagenet21k-B/16"), model="Ti/16", steps=20_000, settings={"batch": 8})
    vit = complete(small, DataConfig(where="made"), data).vit
    assert vit is not None
    assert (vit.dim, vit.dropout, vit.representation_size, vit.head_bias) == (192, 0.1, 192, -10.0)
    resnet = complete(replace(small, model="R50x1"), DataConfig(where="made"), data).resnet
    assert resnet is not None
    assert resnet.head_bias == -10.0


@pytest.mark.parametrize("name", [name for name in PRETRAINING if PRETRAINING[name].published_exaflops])
def test_the_cost_of_a_vision_transformer_is_table_6s(name: str) -> None:
    recipe = PRETRAINING[name]
    if recipe.model[0] != "R":
        assert recipe.exaflops == pytest.approx(recipe.published_exaflops, rel=0.025)


KINDS = ("imagenet1k-B/16", "imagenet21k-L/16-90ep", "jft300m-H/14", "jft300m-R50x1", "jft300m-R50+B/16")


@pytest.mark.parametrize("name", KINDS)
def test_the_small_twin_of_each_kind_runs(name: str, tmp_path: Path) -> None:
    data = RunData(train=made_dataset(24), held=made_dataset(6, seed=1, split="val"))
    config = complete(Request(recipe=find_recipe(f"{name}-smoke")), DataConfig(where="made"), data)
    assert config.data.labels == CLASSES
    assert config.schedule.peak == PRETRAINING[name].row.learning_rate
    run = Run(config=config, data=data, folder=RunFolder(path=tmp_path), ranks=Ranks())
    loop = made_loop(run)
    before = {key: value.clone() for key, value in loop.state.model.state_dict().items()}
    loop.run()
    assert loop.state.progress.step == 6
    assert loop.state.finite()
    assert any(not value.equal(before[key]) for key, value in loop.state.model.state_dict().items())


def test_an_unknown_recipe_is_refused_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match=r"no recipe 'imagenet1k-B/15'.*Did you mean imagenet1k-B/16"):
        find_recipe("imagenet1k-B/15")


def test_a_recipe_for_another_image_size_is_refused() -> None:
    with pytest.raises(ConfigError, match="is for images of 224x224, but --image-size is 384x384"):
        find_recipe("imagenet1k-B/16", (384, 384))


def test_the_list_starts_with_what_is_chosen_without_a_name() -> None:
    assert recipe_names()[0] == "small-data"
    assert find_recipe("small-data") is find_recipe(None)
