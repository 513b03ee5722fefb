import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.calibration import calibration_curve

from vitrail.evaluation.calibration import BINS, bin_of, reliability


def _random_answers(seed: int, images: int) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    confidence = generator.beta(3, 1, images)
    return confidence, generator.random(images) < confidence**2


@given(st.integers(0, 2**16), st.integers(1, 300))
def test_bins_are_those_of_scikit_learns_calibration_curve(seed: int, images: int) -> None:
    confidence, right = _random_answers(seed, images)
    bins = reliability(confidence, right)
    accuracy, mean = calibration_curve(right, confidence, n_bins=BINS, pos_label=True)
    np.testing.assert_allclose(bins.accuracy[bins.images > 0], accuracy)
    np.testing.assert_allclose(bins.confidence[bins.images > 0], mean)
    assert bins.images.sum() == images


@given(st.integers(0, 2**16), st.integers(1, 300))
def test_the_errors_are_their_definitions_written_out(seed: int, images: int) -> None:
    confidence, right = _random_answers(seed, images)
    gaps, weights = [], []
    for low in range(BINS):
        inside = (confidence > low / BINS) & (confidence <= (low + 1) / BINS)
        if inside.any():
            gaps.append(abs(right[inside].mean() - confidence[inside].mean()))
            weights.append(inside.sum() / images)
    bins = reliability(confidence, right)
    assert bins.ece == pytest.approx(float(np.dot(gaps, weights)))
    assert bins.mce == pytest.approx(max(gaps))


def test_an_edge_belongs_to_the_bin_below_and_the_ends_are_inside() -> None:
    assert bin_of(np.array([0.0, 0.2, 0.2001, 1.0])).tolist() == [0, 2, 3, BINS - 1]


def test_a_model_always_sure_and_half_right_is_off_by_a_half() -> None:
    bins = reliability(np.ones(10), np.arange(10) < 5)
    assert bins.ece == bins.mce == 0.5
    assert bins.images.tolist() == [0] * 14 + [10]
