"""The rule gives a run that can be built, whatever the data are."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vitrail.base.settings import from_dict
from vitrail.data.augment.settings import Augmentation
from vitrail.model.config import ViTConfig
from vitrail.runs.choose import Facts, choose
from vitrail.train.schedules import Schedule


@given(
    images=st.integers(2, 20_000_000),
    classes=st.integers(2, 30_000),
    channels=st.integers(1, 13),
    side=st.integers(1, 5000),
)
def test_every_choice_can_be_built(images: int, classes: int, channels: int, side: int) -> None:
    settings = choose(Facts(images=images, classes=classes, channels=channels, side=side))
    model = from_dict(ViTConfig, settings["model"])
    assert model.num_tokens <= 256
    assert settings["preprocessing"]["image_size"] == list(model.image_size)
    assert from_dict(Augmentation, settings["augmentation"]).flip == 0.5
    from_dict(Schedule, settings["schedule"]).check(settings["steps"])
    assert settings["batch"] % 2 == 0
    assert settings["batch"] <= max(images, 2)


@pytest.mark.parametrize(
    ("images", "side", "pixels", "tokens"),
    [(6_000, 28, 32, 16), (50_000, 32, 32, 16), (245, 375, 64, 64), (5_000, 375, 96, 144), (1_281_167, 375, 224, 196)],
)
def test_the_rule_is_as_written(images: int, side: int, pixels: int, tokens: int) -> None:
    settings = choose(Facts(images=images, classes=10, channels=3, side=side))
    model = from_dict(ViTConfig, settings["model"])
    assert model.image_size == (pixels, pixels)
    assert model.num_tokens == tokens
