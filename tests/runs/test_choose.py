"""The rule gives a run that can be built, whatever the data are."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vitrail.model.config import ViTConfig
from vitrail.runs.choose import choose
from vitrail.runs.draft import Draft, Facts


@given(
    images=st.integers(2, 20_000_000),
    classes=st.integers(2, 30_000),
    channels=st.integers(1, 13),
    side=st.integers(1, 5000),
)
def test_every_choice_can_be_built(images: int, classes: int, channels: int, side: int) -> None:
    draft = choose(Facts(images=images, classes=classes, channels=channels, side=side))
    assert _vit(draft).num_tokens <= 256
    assert draft.preprocessing.image_size == draft.model.image_size
    assert (draft.model.channels, draft.preprocessing.channels) == (channels, channels)
    assert draft.model.num_classes == classes
    assert draft.augmentation.flip == 0.5
    draft.schedule.check(draft.steps)
    assert draft.batch % 2 == 0
    assert draft.batch <= max(images, 2)


@pytest.mark.parametrize(
    ("images", "side", "pixels", "tokens"),
    [(6_000, 28, 32, 16), (50_000, 32, 32, 16), (245, 375, 64, 64), (5_000, 375, 96, 144), (1_281_167, 375, 224, 196)],
)
def test_the_rule_is_as_written(images: int, side: int, pixels: int, tokens: int) -> None:
    model = _vit(choose(Facts(images=images, classes=10, channels=3, side=side)))
    assert model.image_size == (pixels, pixels)
    assert model.num_tokens == tokens


@pytest.mark.parametrize(
    ("images", "batch", "blocks", "rest"),
    [(245, 24, 0.008, 0.008), (6_000, 64, 0.008, 0.008), (50_000, 128, 0.008, 0.008), (1_281_167, 256, 0.02, 0.002)],
)
def test_batch_and_rates_are_as_written(images: int, batch: int, blocks: float, rest: float) -> None:
    draft = choose(Facts(images=images, classes=10, channels=3, side=32))
    rates = draft.schedule.peak * draft.optimizer.muon_rate, draft.schedule.peak * draft.optimizer.rest_rate
    assert (draft.batch, *rates) == pytest.approx((batch, blocks, rest))


@pytest.mark.parametrize(("images", "mixed"), [(63, False), (64, True), (800, True), (801, False), (50_000, False)])
def test_few_images_are_mixed_and_changed_and_learned_from_for_longer(images: int, mixed: bool) -> None:
    draft = choose(Facts(images=images, classes=10, channels=3, side=32))
    augmentation = draft.augmentation
    assert (augmentation.mixup, augmentation.cutmix) == ((0.8, 1.0) if mixed else (0.0, 0.0))
    assert (augmentation.layers, augmentation.magnitude) == ((2, 5.0) if mixed else (0, 0.0))
    photos = choose(Facts(images=images, classes=10, channels=3, side=300))  # cropped
    assert not photos.augmentation.mixes
    assert photos.augmentation.layers == 0
    if mixed:
        assert draft.batch % 8 == 0  # pairs on two and on four ranks
        assert (draft.steps, draft.schedule.warmup_steps) == (3_000, 300)
        assert photos.steps == 300


def _vit(draft: Draft) -> ViTConfig:
    assert isinstance(draft.model, ViTConfig)
    return draft.model
