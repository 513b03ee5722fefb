"""Figures of features that need no labels, against closed forms and scikit-learn."""

import numpy as np
import pytest
import torch
from sklearn.neighbors import NearestNeighbors

from vitrail.evaluation.spread import copies_found, nearest, spread


def test_features_of_one_direction_have_no_spread_and_even_ones_have_one() -> None:
    generator = torch.Generator().manual_seed(0)
    one = torch.randn(1, 16, generator=generator) * (1 + torch.rand(50, 1, generator=generator))
    assert spread(one) == pytest.approx(0.0, abs=1e-6)
    assert spread(torch.randn(4000, 16, generator=generator)) == pytest.approx(1.0, abs=0.01)


def test_spread_is_numpys() -> None:
    values = np.random.default_rng(0).normal(1.0, 1.0, (40, 6))
    units = values / np.linalg.norm(values, axis=1, keepdims=True)
    expected = np.sqrt(6) * units.std(axis=0).mean()
    assert spread(torch.from_numpy(values).float()) == pytest.approx(expected, rel=1e-5)


def test_the_nearest_are_scikit_learns() -> None:
    generator = torch.Generator().manual_seed(1)
    values, queries = torch.randn(60, 8, generator=generator), torch.randn(5, 8, generator=generator)
    oracle = NearestNeighbors(n_neighbors=4, metric="cosine").fit(values.numpy())
    assert np.array_equal(nearest(values, queries, 4).numpy(), oracle.kneighbors(queries.numpy())[1])


def test_copies_are_found_where_they_are_near() -> None:
    values = torch.eye(4)
    assert copies_found(values, values + 0.1) == 1.0
    assert copies_found(values, values[[0, 1, 3, 2]]) == 0.5
