"""Logistic regression, against scikit-learn and against the gradient that automatic differentiation finds."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from sklearn.linear_model import LogisticRegression

from tests.evaluation.featuring import random_features, whitened
from vitrail.evaluation import probe as module
from vitrail.evaluation import whitening
from vitrail.evaluation.probe import fit_probe, probe


@pytest.mark.parametrize("c", [0.01, 1.0])
@pytest.mark.parametrize(("count", "width"), [(120, 6), (30, 40)])
def test_coefficients_and_answers_are_those_of_scikit_learn(count: int, width: int, c: float) -> None:
    values, targets = random_features(count, width, 4, apart=0.5)
    queries, _ = random_features(300, width, 4, seed=8, apart=0.5)
    oracle = LogisticRegression(C=c, tol=1e-9, max_iter=10_000).fit(whitened(values, values), targets)
    ours = fit_probe(values, targets, 4, c=c, tolerance=1e-9)
    np.testing.assert_allclose(ours.weights.T, oracle.coef_, rtol=0, atol=2e-5)
    shift = oracle.intercept_.mean()  # equal biases for all classes change nothing, and nothing holds them
    np.testing.assert_allclose(ours.bias - ours.bias.mean(), oracle.intercept_ - shift, rtol=0, atol=2e-5)
    assert (ours.predict(queries) == oracle.predict(whitened(queries, values))).all()


def test_two_classes_are_scikit_learns_with_twice_the_c() -> None:
    """Two rows of weights, of opposite sign, are penalised half as much as their difference, which is its one row."""
    values, targets = random_features(80, 5, 2, apart=0.3)
    oracle = LogisticRegression(C=2.0, tol=1e-9, max_iter=10_000).fit(whitened(values, values), targets)
    ours = fit_probe(values, targets, 2, c=1.0, tolerance=1e-9)
    np.testing.assert_allclose(ours.weights[:, 1] - ours.weights[:, 0], oracle.coef_[0], rtol=0, atol=2e-5)


def test_at_the_end_the_gradient_of_the_loss_is_zero() -> None:
    values, targets = random_features(150, 10, 3, apart=0.5)
    fitted = fit_probe(values, targets, 3, c=0.5, tolerance=1e-6)
    x, y = torch.from_numpy(whitened(values, values)), torch.from_numpy(targets)
    weights, bias = fitted.weights.clone().requires_grad_(), fitted.bias.clone().requires_grad_()
    loss = F.cross_entropy(x @ weights + bias, y) + weights.square().sum() / (2 * 0.5 * 150)
    loss.backward()
    assert weights.grad.abs().max() < 2e-6
    assert bias.grad.abs().max() < 2e-6
    assert fitted.loss == pytest.approx(loss.item(), rel=1e-9)


def test_images_in_small_pieces_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    values, targets = random_features(101, 7, 3, apart=0.5)
    whole = fit_probe(values, targets, 3, tolerance=1e-9)
    monkeypatch.setattr(whitening, "VALUES", 70)
    for most in (2**20, 0):  # whitened once, and again in every step
        monkeypatch.setattr(module, "MOST_WHITENED", most)
        pieces = fit_probe(values, targets, 3, tolerance=1e-9)
        torch.testing.assert_close(pieces.weights, whole.weights, rtol=0, atol=1e-6)
    assert (probe(values, targets, 3, values)["probe"] == fit_probe(values, targets, 3).predict(values)).all()


def test_the_number_of_steps_is_respected() -> None:
    values, targets = random_features(100, 30, 5, apart=0.2)
    few, many = (fit_probe(values, targets, 5, c=100.0, steps=steps).loss for steps in (2, 200))
    assert many < few
