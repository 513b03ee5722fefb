"""Colours, beside Pillow's."""

import colorsys

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageEnhance, ImageOps

from vitrail.base.shapes import Pixels
from vitrail.data.augment import enhance

rng = np.random.default_rng(0)
ACROSS, DOWN = np.meshgrid(np.linspace(20, 230, 40), np.linspace(0, 180, 30))
PHOTO = np.clip(np.stack([ACROSS, DOWN, np.full_like(DOWN, 90)], 2) + rng.normal(0, 25, (30, 40, 3)), 0, 255).astype(
    np.uint8
)
DARK = (PHOTO // 4 + 10).astype(np.uint8)
FLAT = np.full((30, 40, 3), 77, dtype=np.uint8)
IMAGES = {"photo": PHOTO, "dark": DARK, "flat": FLAT}
FACTORS = [0.0, 0.1, 0.55, 1.0, 1.37, 1.9]


def pixels(array: np.ndarray) -> Pixels:
    return torch.from_numpy(array).permute(2, 0, 1)


def apart(ours: Pixels, theirs: Image.Image) -> int:
    return int(np.abs(ours.permute(1, 2, 0).numpy().astype(int) - np.asarray(theirs).astype(int)).max())


@pytest.mark.parametrize("name", IMAGES)
@pytest.mark.parametrize("factor", FACTORS)
@pytest.mark.parametrize(
    ("ours", "theirs", "levels"),
    [
        (enhance.brightness, ImageEnhance.Brightness, 0),
        (enhance.contrast, ImageEnhance.Contrast, 1),
        (enhance.saturation, ImageEnhance.Color, 1),
        (enhance.sharpness, ImageEnhance.Sharpness, 1),
    ],
)
def test_enhancements_are_pillows(ours, theirs, levels: int, factor: float, name: str) -> None:
    image = IMAGES[name]
    assert apart(ours(pixels(image), factor), theirs(Image.fromarray(image)).enhance(factor)) <= levels


@pytest.mark.parametrize("name", IMAGES)
def test_operations_without_a_factor_are_pillows(name: str) -> None:
    image, theirs = pixels(IMAGES[name]), Image.fromarray(IMAGES[name])
    assert apart(enhance.autocontrast(image), ImageOps.autocontrast(theirs)) <= 1
    assert apart(enhance.equalize(image), ImageOps.equalize(theirs)) == 0
    for threshold in (0, 1, 100, 255, 256):
        assert apart(enhance.solarize(image, threshold), ImageOps.solarize(theirs, threshold)) == 0
    assert apart(enhance.solarize(image, 0), ImageOps.invert(theirs)) == 0
    for bits in (4, 5, 8):
        assert apart(enhance.posterize(image, bits), ImageOps.posterize(theirs, bits)) == 0


@pytest.mark.parametrize("turns", [-0.5, -0.2, 0.0, 0.1, 0.37])
def test_hue_turns_as_in_the_standard_library(turns: float) -> None:
    ours = enhance.hue(pixels(PHOTO), turns).permute(1, 2, 0).numpy().reshape(-1, 3)
    for before, after in zip(PHOTO.reshape(-1, 3)[::7], ours[::7], strict=True):
        hue, saturation, value = colorsys.rgb_to_hsv(*(before / 255))
        expected = np.array(colorsys.hsv_to_rgb((hue + turns) % 1, saturation, value)) * 255
        np.testing.assert_allclose(after, expected, atol=0.51)


@given(st.sampled_from([1, 4, 13]), st.floats(0, 2))
def test_other_channels_keep_what_needs_colours_and_get_the_rest_one_by_one(channels: int, factor: float) -> None:
    image = torch.from_numpy(np.random.default_rng(channels).integers(0, 256, (channels, 8, 9), dtype=np.uint8))
    assert torch.equal(enhance.saturation(image, factor), image)
    assert torch.equal(enhance.hue(image, factor - 1), image)
    for operation in (
        lambda one: enhance.brightness(one, factor),
        lambda one: enhance.sharpness(one, factor),
        lambda one: enhance.solarize(one, 100),
        lambda one: enhance.posterize(one, 5),
        enhance.autocontrast,
        enhance.equalize,
    ):
        apart = [operation(image[at : at + 1]) for at in range(channels)]
        assert torch.equal(operation(image), torch.cat(apart))
    mean = int(image.double().mean().item() + 0.5)
    expected = np.clip(mean + (image.numpy() - np.float32(mean)) * np.float32(factor), 0, 255).astype(np.uint8)
    np.testing.assert_array_equal(enhance.contrast(image, factor).numpy(), expected)


def test_a_single_pixel_goes_through_everything() -> None:
    one = torch.tensor([10, 20, 30], dtype=torch.uint8)[:, None, None]
    for change in (enhance.brightness, enhance.contrast, enhance.saturation, enhance.sharpness, enhance.hue):
        assert change(one, 0.5).shape == (3, 1, 1)
    assert torch.equal(enhance.autocontrast(one), one)
    assert torch.equal(enhance.equalize(one), one)
