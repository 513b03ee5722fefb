"""A request becomes a complete run: what is asked for by name, and what is set by path."""

from collections.abc import Mapping
from typing import Any

import pytest

from tests.training.making import made_dataset
from vitrail.base.errors import ConfigError
from vitrail.runs.changes import Changes
from vitrail.runs.config import RunConfig
from vitrail.runs.data import RunData
from vitrail.runs.data_config import DataConfig
from vitrail.runs.request import Request, complete

WHERE = DataConfig(where="made")


def _complete(settings: Mapping[str, Any] | None = None, **keywords: Any) -> RunConfig:
    data = RunData(train=made_dataset(48), evaluation=made_dataset(6, seed=1, split="val"))
    return complete(Request(**keywords, changes=Changes(settings=settings or {})), WHERE, data)


def test_an_image_size_is_that_of_the_model_and_of_its_images() -> None:
    config = _complete(image_size=(16, 32))
    assert config.model.image_size == config.preprocessing.image_size == (16, 32)
    named = _complete(image_size=(32, 32), model="Ti/16")
    assert named.model.image_size == named.preprocessing.image_size == (32, 32)


def test_patches_by_hand_may_be_what_makes_a_size_possible() -> None:
    with pytest.raises(ConfigError, match="do not divide"):
        _complete(image_size=(20, 20))
    config = _complete(image_size=(20, 20), settings={"model.patch_size": [1, 1]})
    assert config.model.sequence == 25


def test_epochs_are_counted_in_batches_by_hand() -> None:
    assert _complete(epochs=3.0, settings={"batch": 12}).steps == 3 * 48 // 12
    assert _complete(epochs=0.001).steps == 1


def test_a_setting_by_hand_is_the_last_word() -> None:
    config = _complete(steps=50, settings={"schedule.warmup_steps": 1, "evaluate_every": 7, "seed": 5})
    assert (config.steps, config.schedule.warmup_steps, config.evaluate_every, config.seed) == (50, 1, 7, 5)


@pytest.mark.parametrize("batch", [0, "abc", 2.5])
def test_a_batch_that_is_not_a_number_of_images_is_refused(batch: object) -> None:
    with pytest.raises(ConfigError, match="batch is"):
        _complete(epochs=1.0, settings={"batch": batch})
