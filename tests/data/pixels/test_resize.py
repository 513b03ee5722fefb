"""Resizing beside the sums written out in NumPy, and beside Pillow."""

from typing import get_args

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from tests.golden.preprocessing_images import photo
from tests.reference import resize as reference
from vitrail.data.pixels.decode import from_array
from vitrail.data.pixels.resize import resize, resize_box, resize_window
from vitrail.data.preprocessing import Interpolation

INTERPOLATIONS = get_args(Interpolation)
SIZES = [(16, 16), (7, 90), (61, 40), (120, 133)]


@pytest.mark.parametrize("channels", [1, 2, 3, 4, 5, 13])
@pytest.mark.parametrize("antialias", [True, False])
@pytest.mark.parametrize("interpolation", INTERPOLATIONS)
def test_any_number_of_channels_is_resized_as_the_sums_say(interpolation, antialias, channels) -> None:
    image = photo(61, 47, channels)
    for size in SIZES:
        made = resize(from_array(image), size, interpolation, antialias).permute(1, 2, 0)
        assert made.is_contiguous()
        exact = reference.resize(image, size, interpolation, antialias)
        steps = reference.resize_in_steps(image, size, interpolation, antialias)
        assert np.abs(made.numpy() - exact).mean() < 0.5
        # rows and columns are rounded to whole levels in turn, and a kernel that overshoots is clipped in between
        assert min(np.abs(made.numpy() - wanted).max() for wanted in (exact, *steps)) <= (
            2 if interpolation == "bicubic" else 1
        )


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("interpolation", ["bilinear", "bicubic", "lanczos"])
def test_with_antialiasing_the_pixels_are_those_of_pillow(interpolation, size) -> None:
    for shape in ((61, 47), (301, 420)):
        image = photo(*shape)
        made = resize(from_array(image), size, interpolation).permute(1, 2, 0).numpy()
        kind = Image.Resampling[interpolation.upper()]
        wanted = np.array(Image.fromarray(image).resize(size[::-1], kind)).astype(int)
        assert np.abs(made - wanted).max() <= (0 if interpolation == "lanczos" else 2)
        assert np.abs(made - wanted).mean() < 0.3


@pytest.mark.parametrize("interpolation", INTERPOLATIONS)
def test_the_same_size_changes_nothing(interpolation) -> None:
    image = from_array(photo(20, 31))
    for antialias in (True, False):
        assert torch.equal(resize(image, (20, 31), interpolation, antialias), image)


@pytest.mark.parametrize("antialias", [True, False])
@pytest.mark.parametrize("interpolation", INTERPOLATIONS)
def test_an_image_of_one_colour_keeps_it(interpolation, antialias) -> None:
    for level in (0, 1, 127, 254, 255):
        image = torch.full((2, 37, 11), level, dtype=torch.uint8)
        assert (resize(image, (9, 40), interpolation, antialias) == level).all()


@given(
    st.tuples(*[st.integers(1, 40)] * 2),
    st.tuples(*[st.integers(1, 40)] * 2),
    st.sampled_from(INTERPOLATIONS),
    st.booleans(),
)
def test_mirrored_and_turned_images_are_resized_alike(old, new, interpolation, antialias) -> None:
    image = from_array(photo(*old))
    made = resize(image, new, interpolation, antialias)
    turned = resize(image.transpose(1, 2), new[::-1], interpolation, antialias).transpose(1, 2)
    assert made.shape == (3, *new)
    if interpolation in ("bilinear", "nearest"):  # a kernel that overshoots is clipped between rows and columns
        assert (made.int() - turned.int()).abs().max() <= 1
    if interpolation != "nearest":  # which of two equally near pixels counts is a matter of direction
        mirrored = resize(image.flip(2), new, interpolation, antialias).flip(2)
        assert (made.int() - mirrored.int()).abs().max() <= 1


@pytest.mark.parametrize("antialias", [True, False])
@pytest.mark.parametrize("interpolation", INTERPOLATIONS)
def test_a_window_is_what_resizing_and_cutting_gives(interpolation, antialias) -> None:
    image = from_array(photo(61, 47))
    for size in SIZES:
        top, left, height, width = size[0] // 4, size[1] // 3, size[0] // 2, size[1] // 2
        whole = resize(image, size, interpolation, antialias)[:, top : top + height, left : left + width]
        window = resize_window(image, size, (top, left, height, width), interpolation, antialias)
        assert (whole.int() - window.int()).abs().max() <= (3 if interpolation in ("bicubic", "lanczos") else 1)


def test_a_box_is_cut_out_first_and_nothing_around_it_counts() -> None:
    image = photo(61, 47)
    alone = from_array(np.ascontiguousarray(image[10:40, 5:25]))
    for interpolation in INTERPOLATIONS:
        made = resize_box(from_array(image), (10, 5, 30, 20), (16, 24), interpolation)
        assert torch.equal(made, resize(alone, (16, 24), interpolation))


@pytest.mark.parametrize("interpolation", INTERPOLATIONS)
@pytest.mark.parametrize("antialias", [True, False])
def test_one_pixel_and_long_rows_are_resized(interpolation, antialias) -> None:
    one = torch.full((3, 1, 1), 77, dtype=torch.uint8)
    assert (resize(one, (5, 9), interpolation, antialias) == 77).all()
    row = from_array(photo(1, 65_535))
    for image in (row, row.transpose(1, 2)):
        assert resize(image, (24, 24), interpolation, antialias).shape == (3, 24, 24)
    assert resize(row, (1, 1), interpolation, antialias).shape == (3, 1, 1)


@pytest.mark.parametrize("antialias", [True, False])
def test_many_channels_in_a_single_column_are_each_resized_by_themselves(antialias: bool) -> None:
    pixels = torch.randint(0, 256, (13, 9, 5), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    together = resize(pixels, (4, 1), "bilinear", antialias)
    alone = torch.cat([resize(channel[None], (4, 1), "bilinear", antialias) for channel in pixels])
    assert (together.int() - alone.int()).abs().max() <= 1
