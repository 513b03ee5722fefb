"""A draft changes as a whole: its length with its schedule, its model with the size of its images."""

from dataclasses import replace

import pytest

from vitrail.base.errors import ConfigError
from vitrail.model.config import ViTConfig
from vitrail.runs.choose import choose
from vitrail.runs.draft import Draft, Facts


@pytest.fixture(scope="module")
def draft() -> Draft:
    chosen = choose(Facts(images=6_000, classes=10, channels=1, side=28))
    return replace(chosen, steps=1_000, schedule=replace(chosen.schedule, warmup_steps=100, cooldown_steps=50))


@pytest.mark.parametrize(
    ("steps", "warmup", "cooldown"), [(1_000, 100, 50), (500, 50, 25), (15, 2, 1), (1, 0, 0), (4_000, 100, 50)]
)
def test_a_shorter_run_warms_up_for_its_share_and_a_longer_one_as_long(
    steps: int, warmup: int, cooldown: int, draft: Draft
) -> None:
    changed = draft.lasting(steps)
    assert (changed.steps, changed.schedule.warmup_steps, changed.schedule.cooldown_steps) == (steps, warmup, cooldown)
    assert replace(changed, steps=1_000, schedule=draft.schedule) == draft


def test_a_run_without_a_step_is_refused(draft: Draft) -> None:
    with pytest.raises(ConfigError, match="steps is 0, but must be a whole number of at least 1"):
        draft.lasting(0)


def test_another_model_brings_the_size_of_its_images(draft: Draft) -> None:
    config = ViTConfig(dim=8, depth=1, num_heads=2, mlp_dim=8, patch_size=(4, 4), image_size=(16, 24), channels=1)
    changed = draft.with_model(config)
    assert changed.model == config
    assert changed.preprocessing == replace(draft.preprocessing, image_size=(16, 24))


def test_another_rate_changes_nothing_else(draft: Draft) -> None:
    assert draft.at_rate(0.5) == replace(draft, schedule=replace(draft.schedule, peak=0.5))
