"""A run's settings: complete, strict, and compared setting by setting."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.training.making import made_config, made_run
from vitrail.base.errors import ConfigError
from vitrail.base.settings import to_dict
from vitrail.runs.config import Stage, differences, read_config, with_settings
from vitrail.runs.execution import Execution


def test_settings_survive_json() -> None:
    config = replace(made_config(), stages=(Stage(until=0.5, image_size=(4, 4)),))
    assert read_config(json.loads(json.dumps(to_dict(config))), "the file") == config


def test_how_the_work_is_done_does_not_change_which_run_it_is() -> None:
    config = made_config()
    other = replace(config, execution=Execution(workers=7, micro_batch=2, shard=True))
    assert config.identity == other.identity
    assert differences(config, other) == []


def test_every_difference_is_told_by_name() -> None:
    config = made_config()
    other = replace(config, seed=9, schedule=replace(config.schedule, peak=0.5))
    assert config.identity != other.identity
    assert differences(config, other) == [
        "schedule.peak is 0.01 here and 0.5 there",
        "seed is 3 here and 9 there",
    ]


def test_a_setting_changes_by_its_path() -> None:
    settings = with_settings(to_dict(made_config()), {"augmentation.flip": 0.0, "batch": 4})
    changed = read_config(settings, "the settings")
    assert changed.augmentation.flip == 0.0
    assert changed.batch == 4


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("augmentation.flop", 0.0, "augmentation.flop is not a setting; did you mean flip"),
        ("batch.size", 4, "batch has no settings of its own"),
        ("steps", 0, "steps is 0, but must be at least 1"),
        ("averaging", 2.0, "between 0 and 1"),
        ("objective.drop_patches", 1.0, "from 0 to below 1"),
        ("precision", "float8", "one of float32, bfloat16, float16"),
        ("patience", 0, "at least 1, or none"),
        ("model.num_classes", 4, "the model has 4 classes, but the data has 3"),
        ("preprocessing.image_size", [4, 4], "give both the same size"),
        ("stages", [{"until": 1.5, "image_size": [4, 4]}], "between 0 and 1"),
        ("stages", [{"until": 0.5, "image_size": [5, 5]}], "does not divide"),
        ("model.positions", "relative", "belong to one full grid"),
        ("execution.workers", -1, "workers is -1"),
        ("execution.device", "tpu", "one of auto, cpu, cuda, mps"),
        ("schedule.warmup_steps", 11, "do not fit into 10 steps"),
    ],
)
def test_what_could_not_go_on_is_refused_before_it_starts(path: str, value: object, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        read_config(with_settings(to_dict(made_config()), {path: value}), "the settings")


def test_a_step_of_a_stage_costs_as_many_pixels_as_it_has() -> None:
    config = replace(made_config(), steps=10, stages=(Stage(until=0.5, image_size=(4, 4)),))
    assert config.stage_costs == [(5, 0.25)]
    assert replace(config, stages=()).stage_costs == []


def test_the_pacer_of_a_run_knows_its_stages(tmp_path: Path) -> None:
    config = replace(made_config(), steps=10, minutes=1.0, stages=(Stage(until=0.5, image_size=(4, 4)),))
    pacer = made_run(tmp_path, config).pacer()
    assert pacer is not None
    assert pacer.stages == [(5, 0.25)]
