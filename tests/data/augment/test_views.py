"""What several views are told apart by: chances of jitter, grey, blur and solarizing, each beside another library."""

import dataclasses

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageFilter, ImageOps
from scipy.ndimage import gaussian_filter

from tests.data.augment.test_apply import EVERYTHING, draws, noise
from vitrail.base.errors import ConfigError
from vitrail.data.augment import enhance
from vitrail.data.augment.apply import augment, augment_all
from vitrail.data.augment.blur import bell, blur
from vitrail.data.augment.geometry import ONE
from vitrail.data.augment.jitter import jitter, jitter_all
from vitrail.data.augment.settings import JITTER, NO_AUGMENTATION, Augmentation

VIEW = Augmentation(
    brightness=0.4, contrast=0.4, saturation=0.2, hue=0.1, jitter=0.8, grey=0.2, blur=0.5, solarize=0.2, antialias=True
)


def smooth(height: int, width: int) -> np.ndarray:
    return gaussian_filter(
        np.random.default_rng(1).integers(0, 256, (height, width, 3)).astype(float), (2, 2, 0)
    ).astype(np.uint8)


@settings(max_examples=25, deadline=None)
@given(
    st.integers(1, 40),
    st.integers(1, 40),
    st.sampled_from([1, 3, 5]),
    st.lists(st.floats(0.1, 3), min_size=1, max_size=3),
)
def test_blur_is_scipys_within_a_level(height: int, width: int, channels: int, deviations: list[float]) -> None:
    images = noise(len(deviations), channels, height, width)
    ours = blur(images, deviations)
    for image, deviation, made in zip(images.numpy(), deviations, ours.numpy(), strict=True):
        expected = gaussian_filter(image.astype(float), (0, deviation, deviation), mode="nearest", truncate=3.0)
        assert np.abs(made - expected).max() <= 1.05  # half a level for the rows, half for the columns


@pytest.mark.parametrize("deviation", [0.6, 1.0, 2.0])
def test_blur_is_about_pillows(deviation: float) -> None:
    """Pillow repeats a box filter, which is a bell only nearly, and repeats the edge before each of them."""
    picture = smooth(60, 50)
    theirs = np.asarray(Image.fromarray(picture).filter(ImageFilter.GaussianBlur(deviation))).astype(int)
    ours = blur(torch.from_numpy(picture).permute(2, 0, 1)[None], [deviation])[0].permute(1, 2, 0).numpy()
    apart = np.abs(ours - theirs)
    assert apart[6:-6, 6:-6].max() <= 3
    assert apart.max() <= 6
    assert apart.mean() < 1.0


def test_the_weights_of_a_blur_are_whole_and_sum_to_one() -> None:
    for deviation in (0.01, 0.1, 0.5, 1.7, 4.0):
        weights = bell(deviation, torch.arange(-12, 13))
        assert weights.sum() == ONE
        assert torch.equal(weights, weights.round())
        assert torch.equal(weights, weights.flip(0))
    flat = torch.full((1, 3, 9, 9), 200, dtype=torch.uint8)
    assert torch.equal(blur(flat, [2.0]), flat)
    assert torch.equal(blur(noise(2, 3, 9, 9), [0.1, 0.1]), noise(2, 3, 9, 9))


def test_grey_and_solarize_are_pillows() -> None:
    picture = np.random.default_rng(0).integers(0, 256, (40, 50, 3), dtype=np.uint8)
    pixels = torch.from_numpy(picture).permute(2, 0, 1)
    grey = augment(pixels, dataclasses.replace(NO_AUGMENTATION, grey=1.0), (40, 50), [0.5] * 100)
    for channel in grey:
        np.testing.assert_array_equal(channel.numpy(), np.asarray(Image.fromarray(picture).convert("L")))
    solarized = augment(pixels, dataclasses.replace(NO_AUGMENTATION, solarize=1.0), (40, 50), [0.5] * 100)
    np.testing.assert_array_equal(
        solarized.permute(1, 2, 0).numpy(), np.asarray(ImageOps.solarize(Image.fromarray(picture)))
    )


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_images_are_jittered_together_as_one_by_one(channels: int) -> None:
    augmentation = Augmentation(brightness=0.8, contrast=0.8, saturation=0.8, hue=0.4)
    images, numbers = noise(300, channels, 9, 7), [one[JITTER] for one in draws(300, augmentation)]
    alone = torch.stack([jitter(image, augmentation, one) for image, one in zip(images, numbers, strict=True)])
    jitter_all(images, augmentation, numbers)
    assert torch.equal(images, alone)


def test_a_jitter_without_some_of_its_parts_leaves_those_alone() -> None:
    augmentation = Augmentation(contrast=0.5)
    images, numbers = noise(50, 3, 8, 8), [one[JITTER] for one in draws(50, augmentation)]
    expected = [enhance.contrast(image, 1 + 0.5 * (2 * one[1] - 1)) for image, one in zip(images, numbers, strict=True)]
    jitter_all(images, augmentation, numbers)
    assert torch.equal(images, torch.stack(expected))


@pytest.mark.parametrize("size", [(32, 32), (20, 28), (60, 50)])
@pytest.mark.parametrize("channels", [1, 3, 13])
def test_a_view_comes_out_the_same_alone_and_in_any_batch(size: tuple[int, int], channels: int) -> None:
    augmentation = dataclasses.replace(VIEW, layers=1, magnitude=5.0, erase=0.3)
    images, numbers = noise(70, channels, 32, 32), draws(70, augmentation)
    alone = torch.stack([augment(image, augmentation, size, one) for image, one in zip(images, numbers, strict=True)])
    together = augment_all(images, augmentation, size, channels, numbers)
    assert torch.equal(together, alone)
    assert together.is_contiguous(memory_format=torch.channels_last)


def test_the_draws_of_augmentation_without_views_stay_what_they_were() -> None:
    """They are the first numbers of a stream, so that more of them change none; and what they decide is the same."""
    more = dataclasses.replace(EVERYTHING, grey=1e-9)
    assert more.draws == EVERYTHING.draws + 5
    images = noise(40, 3, 32, 32)
    for few, many in zip(draws(40, EVERYTHING), draws(40, more), strict=True):
        assert many[: len(few)] == few
    plain = augment_all(images, EVERYTHING, (32, 32), 3, draws(40, EVERYTHING))
    assert torch.equal(augment_all(images, more, (32, 32), 3, draws(40, more)), plain)
    certain = dataclasses.replace(EVERYTHING, jitter=1 - 1e-12)
    assert torch.equal(augment_all(images, certain, (32, 32), 3, draws(40, certain)), plain)


@pytest.mark.parametrize(
    "changes",
    [{"brightness": 1.0, "jitter": 0.3}, {"grey": 0.3}, {"blur": 0.3, "blur_deviation": (2.0, 3.0)}, {"solarize": 0.3}],
)
def test_each_change_happens_as_often_as_asked(changes: dict) -> None:
    augmentation = dataclasses.replace(NO_AUGMENTATION, **changes)
    images = noise(1, 3, 6, 6).expand(2000, -1, -1, -1)
    made = augment_all(images, augmentation, (6, 6), 3, draws(2000, augmentation))
    changed = (made != images).flatten(1).any(1).double().mean().item()
    assert abs(changed - 0.3) < 0.04


def test_changes_are_independent_of_each_other() -> None:
    augmentation = dataclasses.replace(NO_AUGMENTATION, grey=0.5, solarize=0.5)
    image = torch.tensor([[[200]], [[20]], [[20]]], dtype=torch.uint8)
    made = augment_all([image] * 4000, augmentation, (1, 1), 3, draws(4000, augmentation))
    grey, solarized = made[:, 0, 0, 0] == made[:, 1, 0, 0], made[:, 0, 0, 0] == 55
    neither = (~grey & ~solarized).double().mean().item()
    assert abs(grey.double().mean().item() - 0.5) < 0.03
    assert abs(neither - 0.25) < 0.03


def test_deviations_are_spread_over_their_range() -> None:
    augmentation = dataclasses.replace(NO_AUGMENTATION, blur=1.0, blur_deviation=(0.5, 1.5))
    image = torch.zeros(1, 15, 15, dtype=torch.uint8)
    image[0, 7, 7] = 255
    peaks = augment_all([image] * 500, augmentation, (15, 15), 1, draws(500, augmentation))[:, 0, 7, 7].double() / 255
    deviations = 1 / (2 * np.pi * peaks).sqrt()  # the peak of a bell in two dimensions is 1 / (2 pi s^2)
    assert 0.45 < deviations.min() < 0.6
    assert 1.35 < deviations.max() < 1.6
    assert abs(deviations.mean().item() - 1.0) < 0.06


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"jitter": 1.5}, "jitter is 1.5"),
        ({"grey": -0.1}, "grey is -0.1"),
        ({"blur": 2.0}, "blur is 2.0"),
        ({"blur_deviation": (0.0, 1.0)}, "blur_deviation"),
        ({"blur_deviation": (2.0, 1.0)}, "blur_deviation"),
        ({"solarize": float("nan")}, "solarize"),
    ],
)
def test_impossible_settings_are_refused(wrong: dict, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Augmentation(**wrong)
