"""What a run prints: stages with smaller images, and a time left that counts them by what they cost."""

from dataclasses import replace

import pytest

from tests.training.making import made_config
from vitrail.runs.config import RunConfig, Stage
from vitrail.verbs.watch import Watcher, smaller


@pytest.fixture
def config() -> RunConfig:
    return replace(made_config(), steps=100, stages=(Stage(until=0.5, image_size=(4, 4)),))


def test_stages_are_named(config: RunConfig) -> None:
    assert config.preprocessing.image_size == (8, 8)
    assert smaller(config) == "; 4x4 until step 50"
    assert smaller(replace(config, stages=())) == ""


def test_steps_with_smaller_images_count_less_in_the_time_left(config: RunConfig) -> None:
    watcher = Watcher(config, quiet=True)
    watcher.start(0)
    # 40 steps of a quarter of the pixels took 10 s, a second for each whole step: 10 more of them, and 50 whole ones.
    assert watcher.left(40, watcher.began + 10) == pytest.approx(10 * 0.25 + 50)
    assert watcher.left(0, watcher.began + 10) == 0
    watcher.start(60)
    assert watcher.left(80, watcher.began + 10) == pytest.approx(10)
