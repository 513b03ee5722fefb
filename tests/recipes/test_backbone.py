"""The recipe of the backbone is the run that its card describes, and makes a model of the shape that is shipped."""

from dataclasses import replace
from pathlib import Path

import pytest

import vitrail
from tests.training.making import made_dataset, made_loop
from vitrail.base.errors import ConfigError
from vitrail.base.ranks import Ranks
from vitrail.recipes.backbone import backbone
from vitrail.recipes.names import find_adaptation, find_pretraining, find_recipe
from vitrail.runs.data import RunData
from vitrail.runs.data_config import DataConfig
from vitrail.runs.draft import Facts
from vitrail.runs.folder import RunFolder
from vitrail.runs.request import Request, complete
from vitrail.runs.train import Run

FEWEST_STEPS = 4_000
PHOTOS = Facts(images=50_000, classes=100, channels=3, side=64)


def test_the_recipe_makes_the_shipped_model_by_the_shipped_settings() -> None:
    draft, shipped = backbone(PHOTOS), vitrail.load("backbone")
    assert draft.model.adapted(num_classes=0) == shipped.config
    assert draft.preprocessing == shipped.info.preprocessing
    stored = shipped.info.provenance["config"]
    assert (draft.batch, draft.averaging) == (stored["batch"], stored["averaging"])
    assert [[stage.until, list(stage.image_size)] for stage in draft.stages] == [
        [stage["until"], stage["image_size"]] for stage in stored["stages"]
    ]
    assert stored["minutes"] == 115
    assert FEWEST_STEPS < shipped.info.provenance["metrics"]["steps"] < draft.steps  # as many as fitted into its time
    optimizer = stored["optimizer"]
    for name in ("name", "weight_decay", "muon_rate", "rest_rate"):
        assert getattr(draft.optimizer, name) == optimizer[name]
    assert list(draft.augmentation.area) == stored["augmentation"]["area"]
    assert draft.schedule.peak == stored["schedule"]["peak"]


def test_it_is_for_training_at_its_own_size() -> None:
    assert find_recipe("backbone") is backbone
    with pytest.raises(ConfigError, match="is for images of 64x64, but `image_size` is 96x96"):
        find_recipe("backbone", (96, 96))
    with pytest.raises(ConfigError, match="give it to train as `recipe`"):
        find_adaptation("backbone")
    with pytest.raises(ConfigError, match="needs labels"):
        find_pretraining("backbone", None)


def test_its_smoke_twin_runs(tmp_path: Path) -> None:
    data = RunData(train=made_dataset(24), evaluation=made_dataset(6, seed=1, split="val"))
    config = complete(Request(recipe=find_recipe("backbone-smoke")), DataConfig(where="made"), data)
    assert (config.stages, config.steps) == ((), 6)
    loop = made_loop(Run(config=config, data=data, folder=RunFolder(path=tmp_path), ranks=Ranks()))
    loop.run()
    assert loop.state.finite()
    staged = replace(config, stages=backbone(PHOTOS).stages[:1])
    assert [size for _, _, size in staged.phases] == [(32, 32), (32, 32)]
