"""Where to cut."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kstest

from vitrail.base.seeds import key, keys, uniform
from vitrail.data.augment.crop import ERASE_DRAWS, INCEPTION_DRAWS, erase, erase_box, inception_box, pad_corner, shift
from vitrail.data.augment.mixing import cutmix_box

AREA, ASPECT = (0.05, 1.0), (3 / 4, 4 / 3)


def draws(count: int, each: int, name: str = "crop") -> list[list[float]]:
    return uniform(keys(key(0, name), np.arange(count)), each).tolist()


@given(
    st.integers(1, 3000), st.integers(1, 3000), st.lists(st.floats(0, 1, exclude_max=True), min_size=22, max_size=22)
)
def test_an_inception_box_lies_inside_of_the_image_and_keeps_its_ranges(
    height: int, width: int, numbers: list[float]
) -> None:
    top, left, rows, columns = inception_box((height, width), AREA, ASPECT, numbers)
    assert 0 <= top <= top + rows <= height
    assert 0 <= left <= left + columns <= width
    assert min(rows, columns) >= 1
    if min(height, width) > 100 and 0.4 < height / width < 2.5:  # where rounding to pixels hardly matters
        assert 0.045 <= rows * columns / (height * width) <= 1
        assert 3 / 4 - 0.08 <= columns / rows <= 4 / 3 + 0.08


def test_the_rule_of_the_box_written_out() -> None:
    """Of all whole heights for which the area is allowed and the box fits, each is equally likely."""
    height, width, ratio = 60, 100, 1.25
    allowed = [
        rows
        for rows in range(1, height + 1)
        if 0.05 * height * width <= rows * rows * ratio <= 0.8 * height * width and rows * ratio <= width
    ]
    found = [inception_box((height, width), (0.05, 0.8), (ratio, ratio), one) for one in draws(20_000, 22)]
    counts = np.bincount([rows for _, _, rows, _ in found], minlength=height + 1)
    assert sorted(np.flatnonzero(counts)) == allowed
    assert np.abs(counts[allowed] * len(allowed) / 20_000 - 1).max() < 0.2
    assert all(columns == round(rows * ratio) for _, _, rows, columns in found)


def test_aspect_ratios_and_places_are_uniform() -> None:
    found = np.array([inception_box((2000, 2000), (0.05, 0.5), ASPECT, one) for one in draws(4000, INCEPTION_DRAWS)])
    ratios = (found[:, 3] / found[:, 2] - 3 / 4) / (4 / 3 - 3 / 4)
    assert kstest(ratios, "uniform").pvalue > 1e-3
    for start, length in ((0, 2), (1, 3)):
        assert kstest((found[:, start] + 0.5) / (2000 - found[:, length] + 1), "uniform").pvalue > 1e-3


def test_the_height_is_uniform_so_that_the_area_grows_with_its_square() -> None:
    areas = [
        rows * columns / 4e6
        for _, _, rows, columns in (
            inception_box((2000, 2000), (0.04, 1.0), (1.0, 1.0), one) for one in draws(4000, INCEPTION_DRAWS)
        )
    ]
    assert kstest(areas, lambda area: (np.sqrt(area) - 0.2) / 0.8).pvalue > 1e-3
    assert np.mean(areas) == pytest.approx((1 - 0.2**3) / (3 * 0.8), rel=0.03)


@pytest.mark.parametrize(
    ("size", "box"), [((1, 65535), (0, 32767, 1, 1)), ((300, 10), (143, 0, 13, 10)), ((1, 1), (0, 0, 1, 1))]
)
def test_an_image_of_which_no_shape_fits_is_cut_in_the_centre(size: tuple[int, int], box: tuple[int, ...]) -> None:
    assert inception_box(size, (0.5, 1.0), ASPECT, [0.5] * INCEPTION_DRAWS) == box


def test_a_shape_that_does_not_fit_is_drawn_again() -> None:
    numbers = [0.0, 0.3, 0.0, 0.3, 1 - 1e-9, 0.5] + [0.0] * 16  # the wide third is the first to cover half of 100x60
    _, _, rows, columns = inception_box((60, 100), (0.75, 1.0), (0.5, 1.5), numbers)
    assert columns / rows == pytest.approx(1.5, abs=0.02)


@pytest.mark.parametrize("mode", ["reflect", "zero"])
@pytest.mark.parametrize("channels", [1, 3, 13])
def test_a_shift_is_a_window_on_the_padded_image(mode: str, channels: int) -> None:
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (81, channels, 9, 7), dtype=np.uint8)
    corners = [(top, left) for top in range(9) for left in range(9)]
    moved = shift(torch.from_numpy(images), corners, 4, mode)  # type: ignore[arg-type]
    for image, new, (top, left) in zip(images, moved.numpy(), corners, strict=True):
        for row, column in ((0, 0), (8, 6), (4, 3)):
            y, x = row + top - 4, column + left - 4
            if mode == "zero":
                expected = image[:, y, x] if 0 <= y < 9 and 0 <= x < 7 else np.zeros(channels)
            else:
                expected = image[:, 8 - abs(8 - abs(y)), 6 - abs(6 - abs(x))]
            np.testing.assert_array_equal(new[:, row, column], expected)


def test_every_shift_is_equally_likely() -> None:
    corners = np.array([pad_corner(2, one) for one in draws(10_000, 2)])
    counts = np.bincount(corners[:, 0] * 5 + corners[:, 1], minlength=25)
    assert np.abs(counts / 400 - 1).max() < 0.2


def test_erased_boxes_follow_their_area_and_their_shape() -> None:
    found = [erase_box((400, 400), (0.02, 0.2), (0.5, 2.0), one) for one in draws(4000, ERASE_DRAWS)]
    boxes = np.array([box for box in found if box])
    assert len(boxes) == 4000  # none is too large for the image
    areas = boxes[:, 2] * boxes[:, 3] / 160_000
    assert kstest((areas - 0.02) / 0.18, "uniform").pvalue > 1e-3
    assert kstest((np.log(boxes[:, 2] / boxes[:, 3]) / math.log(2) + 1) / 2, "uniform").pvalue > 1e-3
    assert (boxes[:, 0] + boxes[:, 2]).max() <= 400


def test_no_box_is_erased_where_none_fits() -> None:
    assert erase_box((1, 50), (0.02, 0.33), (0.3, 3.3), [0.5] * ERASE_DRAWS) is None


@pytest.mark.parametrize("channels", [1, 3, 4, 13])
def test_erasing_fills_the_box_with_noise_and_leaves_the_rest(channels: int) -> None:
    pixels = torch.full((channels, 60, 50), 7, dtype=torch.uint8)
    erased = erase(pixels, (10, 5, 40, 30), 0.25)
    inside = torch.zeros(60, 50, dtype=torch.bool)
    inside[10:50, 5:35] = True
    assert (erased[:, ~inside] == 7).all()
    assert (pixels == 7).all()
    noise = erased[:, inside].numpy()
    assert abs(noise.mean() - 127.5) < 6
    assert abs(noise.std() - math.sqrt((256**2 - 1) / 12)) < 4
    assert torch.equal(erased, erase(pixels, (10, 5, 40, 30), 0.25))
    assert not torch.equal(erased, erase(pixels, (10, 5, 40, 30), 0.26))


@given(st.integers(1, 300), st.integers(1, 300), *[st.floats(0, 1, exclude_max=True)] * 3)
def test_a_cutmix_box_has_its_area_unless_it_meets_an_edge(
    height: int, width: int, area: float, down: float, right: float
) -> None:
    top, left, rows, columns = cutmix_box((height, width), area, down, right)
    assert 0 <= top <= top + rows <= height
    assert 0 <= left <= left + columns <= width
    assert rows <= math.sqrt(area) * height + 1
    if top > 0 and top + rows < height:
        assert rows == pytest.approx(math.sqrt(area) * height, abs=1.01)
