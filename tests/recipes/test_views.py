"""The recipes of DINO and MoCo v3: the published constants, and small twins that run."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import vitrail
from vitrail.model.cost import cost
from vitrail.recipes.unlabelled import UNLABELLED
from vitrail.runs.choose import choose_model
from vitrail.runs.choose_pretraining import find_rule
from vitrail.runs.choose_views import prototypes_for, small_first
from vitrail.runs.config import Stage
from vitrail.runs.data import RunData
from vitrail.runs.data_config import DataConfig
from vitrail.runs.draft import Facts
from vitrail.runs.request import Request, complete
from vitrail.selfsup.dino import DinoConfig
from vitrail.selfsup.moco import MocoConfig

IMAGENET = Facts(images=1_281_167, classes=1000, channels=3, side=400)


def test_dino_has_the_published_constants() -> None:
    draft = UNLABELLED["dino-S/16"](IMAGENET)
    assert (draft.batch, draft.steps, draft.schedule.warmup_steps) == (1024, 1_000_912, 12_511)
    assert (draft.schedule.peak, draft.schedule.end) == (2e-3, 1e-6)
    assert (draft.optimizer.weight_decay, draft.optimizer.weight_decay_end, draft.optimizer.clip_norm) == (0.04, 0.4, 3)
    objective = draft.objective
    assert isinstance(objective, DinoConfig)
    assert (objective.prototypes, objective.hidden, objective.bottleneck) == (65_536, 2048, 256)
    assert (objective.momentum, objective.centre_momentum, objective.student_temperature) == (0.996, 0.9, 0.1)
    assert (objective.teacher_temperature, objective.teacher_temperature_end) == (0.04, 0.07)
    first, second, local = draft.augmentation, objective.second, objective.local
    assert [view.area for view in (first, second, local)] == [(0.4, 1.0), (0.4, 1.0), (0.05, 0.4)]
    assert [view.blur for view in (first, second, local)] == [1.0, 0.1, 0.5]
    assert [view.solarize for view in (first, second, local)] == [0.0, 0.2, 0.0]
    for view in (first, second, local):
        assert (view.brightness, view.contrast, view.saturation, view.hue, view.jitter) == (0.4, 0.4, 0.2, 0.1, 0.8)
        assert (view.grey, view.blur_deviation, view.interpolation) == (0.2, (0.1, 2.0), "bicubic")
    assert [view.image_size for view in objective.views(draft.model)] == [(224, 224)] + [(96, 96)] * 8
    assert draft.preprocessing.mean == (0.485, 0.456, 0.406)


@pytest.mark.parametrize("model", ["S/16", "B/16"])
def test_moco_has_the_published_constants(model: str) -> None:
    draft = UNLABELLED[f"moco-{model}"](IMAGENET)
    assert (draft.batch, draft.steps, draft.schedule.warmup_steps) == (4096, 93_835, 12_511)
    assert draft.schedule.peak == pytest.approx(2.4e-3)
    assert (draft.optimizer.weight_decay, draft.optimizer.frozen) == (0.1, ("embedding.projection.*",))
    objective = draft.objective
    assert isinstance(objective, MocoConfig)
    assert (objective.hidden, objective.outputs, objective.momentum, objective.temperature) == (4096, 256, 0.99, 0.2)
    assert (draft.augmentation.area, draft.augmentation.blur, draft.augmentation.solarize) == ((0.08, 1.0), 1.0, 0.0)
    assert (objective.second.blur, objective.second.solarize) == (0.1, 0.2)


def test_small_data_has_fewer_prototypes() -> None:
    counts = [prototypes_for(images) for images in (1, 2_000, 50_000, 1_281_167)]
    assert counts == [256, 256, 512, 16_384]


def test_the_rule_of_each_follows_the_data() -> None:
    cifar = Facts(images=50_000, classes=10, channels=3, side=32)
    dino, moco = find_rule("dino")(cifar), find_rule("moco")(cifar)
    assert isinstance(dino.objective, DinoConfig)
    assert (dino.objective.prototypes, dino.objective.hidden, dino.objective.local_views) == (512, 512, 4)
    assert (dino.optimizer.name, dino.schedule.peak, dino.objective.momentum) == ("adam", 5e-4, 0.98)
    assert [view.image_size for view in dino.objective.views(dino.model)] == [(32, 32)] + [(16, 16)] * 4
    supervised = choose_model(cifar, 32)
    assert moco.model == supervised
    assert dino.model == replace(supervised, pool="class-token", class_token=True)
    assert dino.augmentation.blur == 0
    assert (dino.batch, moco.batch) == (64, 256)
    assert moco.stages == (Stage(until=0.9, image_size=(16, 16)),)
    assert dino.stages == ()
    photos = find_rule("dino")(Facts(images=20_000, classes=0, channels=3, side=300))
    assert photos.augmentation.blur == 1
    assert photos.augmentation.blur_deviation[1] == pytest.approx(2 * 128 / 224)
    few = find_rule("moco")(Facts(images=9, classes=0, channels=1, side=28))
    assert few.batch <= 9
    few.objective.check_batch(few.batch, whole=True)


def test_small_images_come_first_in_whole_patches() -> None:
    halves = {24: None, 32: 16, 40: 16, 56: 24, 64: 32, 96: 48, 224: 112}
    for side, half in halves.items():
        assert [stage.image_size for stage in small_first(side)] == ([] if half is None else [(half, half)])


def test_small_images_count_by_their_size_in_the_cost() -> None:
    recipe = UNLABELLED["moco-cifar10"]
    model = recipe.model(3)
    macs = [cost(replace(model, image_size=(side, side))).macs for side in (16, 32)]
    each = 6 * (0.9 * macs[0] + 0.1 * macs[1]) * (2 + 2 / 3)  # two views, and two of the slow encoder without gradients
    assert recipe.exaflops == pytest.approx(each * 5_000 * 256 / 1e18)


@pytest.mark.parametrize(
    ("request_", "stages"),
    [({}, 1), ({"image_size": (32, 32)}, 1), ({"image_size": (24, 24)}, 0), ({"model": "Ti/16"}, 0)],
)
def test_another_size_or_model_has_no_stages(request_: dict[str, Any], stages: int) -> None:
    data = RunData(train=vitrail.data.open_splits("sample")["train"], evaluation=None)
    request = Request(recipe=find_rule("moco"), labels=False, **request_)
    assert len(complete(request, DataConfig(where="made"), data).stages) == stages


def test_a_run_that_begins_with_small_images_ends(tmp_path: Path) -> None:
    small = {"model.depth": 1, "objective.hidden": 8}
    run = vitrail.pretrain(
        "sample", objective="moco", fraction=0.01, steps=2, probe="none", settings=small, out=tmp_path, quiet=True
    )
    assert (len(run.config.stages), run.result.steps) == (1, 2)


@pytest.mark.parametrize("name", ["dino-S/16", "moco-S/16", "dino-photos", "moco-cifar10"])
def test_the_small_twin_runs(name: str, tmp_path: Path) -> None:
    recipe = f"{name}-smoke"
    run = vitrail.pretrain("sample", recipe=recipe, fraction=0.05, out=tmp_path / "run", probe="none", quiet=True)
    assert run.result.steps == 6
    assert run.config.objective.kind == name.split("-")[0]
    assert run.model.config.num_classes == 0
