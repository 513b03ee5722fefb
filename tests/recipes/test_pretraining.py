"""Every row of Table 3 is a recipe, with the paper's numbers, and a small twin of it runs."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tests.training.making import CLASSES, made_dataset, made_loop
from vitrail.base.errors import ConfigError
from vitrail.base.ranks import Ranks
from vitrail.model.build import build
from vitrail.model.config import ViTConfig
from vitrail.model.resnet import ResNetConfig
from vitrail.recipes.names import find_recipe, recipe_names
from vitrail.recipes.pretraining import PRETRAINING
from vitrail.runs.changes import Changes
from vitrail.runs.data import RunData
from vitrail.runs.data_config import DataConfig
from vitrail.runs.draft import Facts
from vitrail.runs.folder import RunFolder
from vitrail.runs.request import Request, complete
from vitrail.runs.train import Run

IMAGENET = Facts(images=1_281_167, classes=1000, channels=3, side=375)


# Table 3 typed run by run: epochs, base learning rate, decay, weight decay, dropout.
TABLE_3 = """
jft300m-B/16           7 8e-4 linear 0.1  0
jft300m-B/32           7 8e-4 linear 0.1  0
jft300m-L/32           7 6e-4 linear 0.1  0
jft300m-L/16-7ep       7 4e-4 linear 0.1  0
jft300m-L/16-14ep     14 4e-4 linear 0.1  0
jft300m-H/14          14 3e-4 linear 0.1  0
jft300m-R50x1          7 1e-3 linear 0.1  0
jft300m-R50x2          7 1e-3 linear 0.1  0
jft300m-R101x1         7 8e-4 linear 0.1  0
jft300m-R152x1         7 6e-4 linear 0.1  0
jft300m-R152x2         7 6e-4 linear 0.1  0
jft300m-R50+B/16       7 8e-4 linear 0.1  0
jft300m-R50+B/32       7 8e-4 linear 0.1  0
jft300m-R50+L/32       7 2e-4 linear 0.1  0
jft300m-R50+L/16-7ep   7 4e-4 linear 0.1  0
jft300m-R50+L/16-14ep 14 4e-4 linear 0.1  0
imagenet21k-B/16      90 1e-3 linear 0.03 0.1
imagenet21k-B/32      90 1e-3 linear 0.03 0.1
imagenet21k-L/16-30ep 30 1e-3 linear 0.03 0.1
imagenet21k-L/16-90ep 90 1e-3 linear 0.03 0.1
imagenet21k-L/32-30ep 30 1e-3 linear 0.03 0.1
imagenet21k-L/32-90ep 90 1e-3 linear 0.03 0.1
imagenet1k-B/16      300 3e-3 cosine 0.3  0.1
imagenet1k-B/32      300 3e-3 cosine 0.3  0.1
imagenet1k-L/16      300 3e-3 cosine 0.3  0.1
imagenet1k-L/32      300 3e-3 cosine 0.3  0.1
imagenet1k-H/14      300 3e-3 cosine 0.3  0.1
"""
ROWS = {line.split()[0]: line.split()[1:] for line in TABLE_3.strip().splitlines()}
TABLE_1 = {"B": (12, 768, 3072, 12), "L": (24, 1024, 4096, 16), "H": (32, 1280, 5120, 16)}


def test_there_is_a_recipe_for_each_model_and_length_of_table_3() -> None:
    assert list(PRETRAINING) == list(ROWS)


@pytest.mark.parametrize("name", ROWS)
def test_a_recipe_has_the_numbers_of_its_row(name: str) -> None:
    epochs, rate, decay, weight_decay, dropout = ROWS[name]
    data = name.partition("-")[0]
    draft = PRETRAINING[name](IMAGENET)
    assert draft.batch == 4096
    assert draft.steps == round(1_281_167 * int(epochs) / 4096)
    assert (draft.schedule.shape, draft.schedule.peak) == (decay, float(rate))
    assert draft.schedule.end == (1e-5 if decay == "linear" else 0.0)
    assert (draft.schedule.warmup_steps, draft.schedule.cooldown_steps) == (10_000, 0)
    optimizer = draft.optimizer
    assert (optimizer.name, optimizer.beta1, optimizer.beta2) == ("adam", 0.9, 0.999)
    assert (optimizer.weight_decay, optimizer.layer_decay) == (float(weight_decay), 1.0)
    assert optimizer.clip_norm == (None if data == "jft300m" else 1.0)
    assert draft.objective.loss == ("softmax" if data == "imagenet1k" else "sigmoid")
    assert draft.objective.label_smoothing == 0
    augmentation = draft.augmentation
    assert (augmentation.crop, augmentation.area, augmentation.flip) == ("inception", (0.05, 1.0), 0.5)
    assert (augmentation.mixup, augmentation.cutmix) == (0, 0)
    assert draft.preprocessing.image_size == (224, 224)
    assert (draft.preprocessing.mean, draft.preprocessing.std) == ((0.5,) * 3, (0.5,) * 3)
    assert draft.model.head_bias == (0.0 if data == "imagenet1k" else -10.0)
    assert (draft.model.image_size, draft.model.num_classes) == ((224, 224), 1000)
    assert draft.model.kind == ("resnet" if "x" in name else "vit")
    if isinstance(vit := draft.model, ViTConfig):
        letter = name.removeprefix(f"{data}-").removeprefix("R50+")[0]
        assert (vit.depth, vit.dim, vit.mlp_dim, vit.num_heads) == TABLE_1[letter]
        assert vit.pool == "class-token"
        assert (vit.dropout, vit.attention_dropout) == (float(dropout), 0)
        assert vit.representation_size == vit.dim


@pytest.mark.parametrize(
    ("name", "bias"), [("jft300m-B/16", -10.0), ("imagenet21k-L/16-90ep", -10.0), ("imagenet1k-B/16", 0.0)]
)
def test_a_model_of_a_recipe_with_sigmoid_loss_begins_by_saying_no_to_every_class(name: str, bias: float) -> None:
    model = build(find_recipe(f"{name}-smoke")(IMAGENET).model, seed=0)
    with torch.no_grad():
        logits = model.eval()(torch.randn(2, 3, 32, 32))
    assert torch.equal(logits, torch.full((2, 1000), bias))


def test_another_model_keeps_the_heads_and_the_dropout_of_a_recipe() -> None:
    data = RunData(train=made_dataset(24), evaluation=None)
    small = Request(recipe=find_recipe("imagenet21k-B/16"), model="Ti/16", steps=20_000, changes=Changes(batch=8))
    vit = complete(small, DataConfig(where="made"), data).model
    assert isinstance(vit, ViTConfig)
    assert (vit.dim, vit.dropout, vit.representation_size, vit.head_bias) == (192, 0.1, 192, -10.0)
    resnet = complete(replace(small, model="R50x1"), DataConfig(where="made"), data).model
    assert isinstance(resnet, ResNetConfig)
    assert resnet.head_bias == -10.0


@pytest.mark.parametrize("name", [name for name in PRETRAINING if PRETRAINING[name].published_exaflops])
def test_the_cost_is_table_6s(name: str) -> None:
    recipe = PRETRAINING[name]
    assert recipe.exaflops == pytest.approx(recipe.published_exaflops, rel=0.055 if "R" in recipe.model else 0.025)


KINDS = ("imagenet1k-B/16", "imagenet21k-L/16-90ep", "jft300m-H/14", "jft300m-R50x1", "jft300m-R50+B/16")


@pytest.mark.parametrize("name", KINDS)
def test_the_small_twin_of_each_kind_runs(name: str, tmp_path: Path) -> None:
    data = RunData(train=made_dataset(24), evaluation=made_dataset(6, seed=1, split="val"))
    config = complete(Request(recipe=find_recipe(f"{name}-smoke")), DataConfig(where="made"), data)
    assert config.facts.labels == CLASSES
    assert config.schedule.peak == PRETRAINING[name].row.learning_rate
    run = Run(config=config, data=data, folder=RunFolder(path=tmp_path), ranks=Ranks())
    loop = made_loop(run)
    before = {key: value.clone() for key, value in loop.state.learner.model.state_dict().items()}
    loop.run()
    assert loop.state.progress.step == 6
    assert loop.state.finite()
    assert any(not value.equal(before[key]) for key, value in loop.state.learner.model.state_dict().items())


def test_an_unknown_recipe_is_refused_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match=r"no recipe 'imagenet1k-B/15'.*Did you mean imagenet1k-B/16"):
        find_recipe("imagenet1k-B/15")


def test_a_recipe_for_another_image_size_is_refused() -> None:
    with pytest.raises(ConfigError, match="is for images of 224x224, but `image_size` is 384x384"):
        find_recipe("imagenet1k-B/16", (384, 384))


def test_the_list_starts_with_what_is_chosen_without_a_name() -> None:
    assert recipe_names()[0] == "small-data"
    assert find_recipe("small-data") is find_recipe(None)
