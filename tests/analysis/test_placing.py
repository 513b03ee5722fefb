import numpy as np
import pytest
import torch

from vitrail import Preprocessing
from vitrail.analysis.placing import place
from vitrail.data.transforms import preprocess

CROP = Preprocessing(image_size=(24, 24), geometry="crop", crop_fraction=0.75, antialias=True)
WIDE = Preprocessing(image_size=(16, 32), geometry="crop", crop_fraction=0.8, antialias=True)
SQUARE = Preprocessing(image_size=(24, 24), antialias=True)


@pytest.mark.parametrize("how", [CROP, WIDE, SQUARE])
@pytest.mark.parametrize("size", [(120, 90), (60, 200), (31, 47)])
def test_a_map_of_the_input_lies_where_preprocessing_took_it_from(how, size) -> None:
    """Each image is a ramp, down or across; its own input, taken as a map, must give the ramp back."""
    for axis in (0, 1):
        ramp = np.broadcast_to(np.arange(size[axis], dtype=float).reshape((-1, 1) if axis == 0 else (1, -1)), size)
        pixels = torch.from_numpy(np.ascontiguousarray(ramp)).to(torch.uint8)[None]
        heat = preprocess(pixels, how)[0].numpy().astype(float)
        placed = place(heat, how, size, size)
        inside = ~np.isnan(placed)
        shares = how.window(*size)
        assert inside.mean() == pytest.approx(shares[2] * shares[3], abs=0.05)
        cell = size[axis] / how.resized(*size)[axis] if how.geometry == "crop" else size[axis] / how.image_size[axis]
        edge = int(np.ceil(cell)) + 1  # past the centre of the outermost cell there is nothing to interpolate
        rows, columns = np.flatnonzero(inside.any(1)), np.flatnonzero(inside.any(0))
        core = np.ix_(rows[edge:-edge], columns[edge:-edge])
        assert np.abs(placed - ramp)[core].max() < 1.5 + cell / 2


def test_what_the_crop_cut_off_is_not_a_number() -> None:
    placed = place(np.ones((3, 3)), CROP, (40, 80), (40, 80))
    seen = np.flatnonzero(~np.isnan(placed).all(axis=0))
    assert (seen[0], seen[-1]) == (25, 54)  # 30 of 80 columns in the middle: three quarters of the short side
    assert np.nanmin(placed) == np.nanmax(placed) == pytest.approx(1)


def test_a_map_as_large_as_the_image_stays_as_it_is_and_one_cell_is_even() -> None:
    heat = np.random.default_rng(0).normal(size=(5, 7))
    np.testing.assert_allclose(place(heat, SQUARE, (5, 7), (5, 7)), heat, atol=1e-12)
    np.testing.assert_allclose(place(np.array([[2.0]]), SQUARE, (9, 4), (18, 8)), 2.0)


def test_the_hottest_cell_is_hottest_at_its_own_centre() -> None:
    heat = np.zeros((4, 4))
    heat[1, 3] = 1
    placed = place(heat, SQUARE, (80, 160), (80, 160))
    row, column = np.unravel_index(placed.argmax(), placed.shape)
    assert abs(row + 0.5 - 30) <= 0.5
    assert column + 0.5 >= 140
