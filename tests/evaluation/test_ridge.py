"""Least squares in closed form, against the normal equations, scikit-learn, and itself in its other form."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import Ridge

from tests.evaluation.featuring import random_features, whitened
from vitrail.evaluation import whitening
from vitrail.evaluation.defaults import L2
from vitrail.evaluation.ridge import BIAS, decompose, decompose_dual, decompose_primal, ridge
from vitrail.evaluation.whitening import Whitening, rows_at_once


def inputs(values: torch.Tensor, by: torch.Tensor) -> np.ndarray:
    """Whitened features and the constant 100."""
    return np.concatenate([whitened(values, by), np.full((len(values), 1), 100.0)], axis=1)


def signs(targets: np.ndarray, classes: int) -> np.ndarray:
    return 2.0 * np.eye(classes)[targets] - 1


def test_the_constants_are_those_of_the_paper() -> None:
    assert (BIAS, L2, whitening.EPSILON) == (100.0, 1024.0, 1e-5)


@given(
    count=st.integers(2, 40),
    width=st.integers(1, 30),
    classes=st.integers(2, 6),
    l2=st.sampled_from([1e-3, 1.0, 2.0**10, 1e6]),
    seed=st.integers(0, 2**16),
)
def test_both_forms_solve_the_normal_equations(count: int, width: int, classes: int, l2: float, seed: int) -> None:
    values, targets = random_features(count, width, classes, seed=seed)
    x, y = inputs(values, values), signs(targets, classes)
    expected = np.linalg.solve(x.T @ x + l2 * np.eye(width + 1), x.T @ y)
    for form in (decompose_primal, decompose_dual):
        np.testing.assert_allclose(form(values, targets, classes).weights(l2), expected, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize(("count", "width"), [(200, 24), (20, 48), (25, 24)])
@pytest.mark.parametrize("l2", [1.0, L2])
def test_weights_and_answers_are_those_of_scikit_learn(count: int, width: int, l2: float) -> None:
    values, targets = random_features(count, width, 5, apart=0.7)
    queries, _ = random_features(500, width, 5, seed=9, apart=0.7)
    oracle = Ridge(alpha=l2, fit_intercept=False, solver="cholesky").fit(inputs(values, values), signs(targets, 5))
    ours = decompose(values, targets, 5)
    np.testing.assert_allclose(ours.weights(l2).T, oracle.coef_, rtol=1e-6, atol=1e-9)
    expected = oracle.predict(inputs(queries, values)).argmax(1)
    assert (ours.predict(queries, l2) == expected).all()
    assert len(np.unique(expected)) > 1


@pytest.mark.parametrize(("count", "form"), [(4, decompose_dual), (5, decompose_primal), (6, decompose_primal)])
def test_the_form_that_costs_least_is_taken(count: int, form) -> None:
    values, targets = random_features(count, 4, 2)
    expected = form(values, targets, 2)
    cheapest = decompose(values, targets, 2)  # of as many eigenvalues as the smaller of images and inputs
    assert cheapest.eigenvalues.equal(expected.eigenvalues)
    assert cheapest.back.equal(expected.back)


def test_rows_in_small_pieces_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    values, targets = random_features(203, 16, 4)
    whole = decompose_primal(values, targets, 4)
    monkeypatch.setattr(whitening, "VALUES", 300)
    pieces = decompose_primal(values, targets, 4)
    torch.testing.assert_close(pieces.weights(), whole.weights(), rtol=1e-9, atol=1e-12)
    assert (pieces.predict(values) == whole.predict(values)).all()


@pytest.mark.parametrize("shape", [(50_000, 768), (1_281_167, 1280), (10, 8192)])
def test_no_piece_of_the_training_images_takes_more_than_8_mib(shape: tuple[int, int]) -> None:
    values = torch.zeros(1, 1).expand(shape)  # one stored number
    rows = rows_at_once(shape[1])
    white = Whitening(mean=torch.zeros(shape[1]), std=torch.ones(shape[1]))
    places, first = next(white.parts(values))
    assert places == slice(0, min(rows, shape[0]))
    assert first.nbytes <= 8 * 2**20
    assert first.dtype == torch.float64


def test_a_strength_of_regularisation_is_a_division_away() -> None:
    values, targets = random_features(60, 8, 3, apart=0.5)
    queries, _ = random_features(40, 8, 3, seed=3, apart=0.5)
    several = ridge(values, targets, 3, queries, l2=(1e-6, 2.0**10, 1e9))
    assert list(several) == ["ridge l2=1e-06", "ridge l2=1024", "ridge l2=1e+09"]
    for strength, answers in zip((1e-6, 2.0**10, 1e9), several.values(), strict=True):
        (alone,) = ridge(values, targets, 3, queries, l2=(strength,)).values()
        assert (alone == answers).all()
    assert list(ridge(values, targets, 3, queries)) == ["ridge"]


def test_whitening_is_numpys_mean_and_deviation() -> None:
    values, _ = random_features(57, 9, 3)
    queries, _ = random_features(5, 9, 3, seed=4)
    np.testing.assert_allclose(Whitening.of(values)(queries), whitened(queries, values), rtol=1e-9, atol=1e-12)


def test_a_constant_feature_does_not_divide_by_zero() -> None:
    values, targets = random_features(30, 6, 3)
    values[:, 2] = 4.0
    assert np.isfinite(decompose(values, targets, 3).weights().numpy()).all()
