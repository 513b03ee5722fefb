import numpy as np
import pytest
import scipy.ndimage
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from vitrail.data.stress.draws import Draws, poisson_table
from vitrail.data.stress.planes import convolve, inside, magnify, sample, smooth

IMAGE = np.random.default_rng(0).uniform(0, 255, (2, 23, 31))


@pytest.mark.parametrize("sigma", [0.05, 0.7, 2.0, 19.5])
@pytest.mark.parametrize("border", ["nearest", "reflect", "mirror"])
def test_smoothing_is_scipys(sigma, border) -> None:
    wanted = np.stack([scipy.ndimage.gaussian_filter(plane, sigma, mode=border, truncate=3) for plane in IMAGE])
    np.testing.assert_allclose(smooth(IMAGE, sigma, truncate=3.0, border=border), wanted, atol=1e-9)


@pytest.mark.parametrize("factor", [1.0, 1.01, 1.3, 2.25, 4.0])
def test_magnifying_is_scipys_zoom_cut_to_size(factor) -> None:
    square = IMAGE[:, :, :23]
    kept = int(np.ceil(23 / factor))
    start = (23 - kept) // 2
    inner = square[:, start : start + kept, start : start + kept]
    grown = scipy.ndimage.zoom(inner, (1, factor, factor), order=1)
    trim = (grown.shape[1] - 23) // 2
    wanted = grown[:, trim : trim + 23, trim : trim + 23]
    np.testing.assert_allclose(magnify(square, factor), wanted, atol=1e-9)


def test_sampling_is_scipys() -> None:
    random = np.random.default_rng(1)
    rows, columns = random.uniform(-6, 28, (9, 9)), random.uniform(-8, 38, (9, 9))
    for border in ("reflect", "mirror", "nearest"):
        wanted = np.stack(
            [scipy.ndimage.map_coordinates(plane, [rows, columns], order=1, mode=border) for plane in IMAGE]
        )
        np.testing.assert_allclose(sample(IMAGE, rows, columns, border), wanted, atol=1e-9)


@pytest.mark.parametrize("size", [3, 5, 17])
def test_a_kernel_weighs_as_scipys_does(size) -> None:
    kernel = np.random.default_rng(2).uniform(0, 1, (size, size))
    wanted = np.stack([scipy.ndimage.correlate(plane, kernel, mode="mirror") for plane in IMAGE])
    np.testing.assert_allclose(convolve(IMAGE, kernel), wanted, atol=1e-8)


@given(place=st.integers(-100, 100), size=st.integers(1, 9))
def test_every_place_has_a_pixel(place, size) -> None:
    for border, pad in (("nearest", "edge"), ("reflect", "symmetric"), ("mirror", "reflect")):
        line = np.pad(np.arange(size), 100, mode=pad if size > 1 else "edge")
        assert inside(np.array([place]), size, border)[0] == line[place + 100] if place < size + 100 else True


@pytest.mark.parametrize("photons", [3, 60, 500])
def test_the_poisson_distribution_is_scipys(photons) -> None:
    table = poisson_table(photons)
    means = np.arange(256)[:, None] / 255 * photons
    np.testing.assert_allclose(table, scipy.stats.poisson.cdf(np.arange(table.shape[1]), means), atol=1e-10)


def test_draws_have_their_distributions_and_depend_on_nothing_but_their_names() -> None:
    draws = Draws(seed=3, stress="fog", row=12)
    normal = draws.normal("a", 100, 200)
    assert scipy.stats.kstest(normal.ravel(), "norm").pvalue > 0.01
    levels = np.full((200, 100), 200, np.uint8)
    counts = draws.poisson("b", levels, 12.0)
    assert counts.mean() == pytest.approx(200 / 255 * 12, rel=0.01)
    assert counts.var() == pytest.approx(200 / 255 * 12, rel=0.03)
    assert (draws.poisson("b", np.zeros((5, 5), np.uint8), 12.0) == 0).all()
    whole = draws.whole("c", -2, 2, 4000)
    assert set(np.unique(whole)) == {-2, -1, 0, 1}
    assert sorted(draws.permutation("d", 50)) == list(range(50))
    np.testing.assert_array_equal(Draws(seed=3, stress="fog", row=12).normal("a", 100, 200), normal)
    for other in (Draws(seed=4, stress="fog", row=12), Draws(seed=3, stress="fog", row=13)):
        assert not np.array_equal(other.normal("a", 100, 200), normal)
