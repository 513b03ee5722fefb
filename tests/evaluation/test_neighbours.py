"""Votes of the nearest neighbours, against scikit-learn."""

import numpy as np
import pytest
import torch
from sklearn.neighbors import KNeighborsClassifier

from tests.evaluation.featuring import random_features
from vitrail.evaluation import neighbours as module
from vitrail.evaluation.neighbours import neighbours


@pytest.mark.parametrize(("count", "most"), [(300, 20), (300, 1), (300, 7), (9, 20)])
def test_answers_are_those_of_scikit_learn(count: int, most: int) -> None:
    values, targets = random_features(count, 12, 6, apart=0.6)
    queries, _ = random_features(400, 12, 6, seed=3, apart=0.6)
    oracle = KNeighborsClassifier(
        n_neighbors=min(most, count), metric="cosine", weights=lambda away: np.exp((1 - away) / 0.07)
    ).fit(values.double().numpy(), targets)
    answers = neighbours(values, targets, 6, queries, most=most)["neighbours"]
    assert (answers == oracle.predict(queries.double().numpy())).all()
    assert len(np.unique(answers)) > 1


def test_queries_in_small_pieces_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    values, targets = random_features(50, 8, 3, apart=0.5)
    queries, _ = random_features(41, 8, 3, seed=5, apart=0.5)
    whole = neighbours(values, targets, 3, queries)["neighbours"]
    monkeypatch.setattr(module, "SIMILARITIES", 150)
    assert (neighbours(values, targets, 3, queries)["neighbours"] == whole).all()


def test_the_length_of_a_feature_does_not_matter() -> None:
    values, targets = random_features(50, 8, 3, apart=0.5)
    queries, _ = random_features(41, 8, 3, seed=5, apart=0.5)
    longer = queries * torch.linspace(0.1, 50, 41)[:, None]
    whole = neighbours(values, targets, 3, queries)["neighbours"]
    assert (neighbours(values, targets, 3, longer)["neighbours"] == whole).all()


def test_near_votes_weigh_more_than_many_far_ones() -> None:
    angles = torch.tensor([0.0, 0.6, 0.62, 0.64])
    values = torch.stack([angles.cos(), angles.sin()], dim=1)
    answers = neighbours(values, np.array([1, 0, 0, 0]), 2, torch.tensor([[1.0, 0.0]]))["neighbours"]
    assert answers.tolist() == [1]  # exp(1 / 0.07) against three times about exp(0.82 / 0.07)
    warm = neighbours(values, np.array([1, 0, 0, 0]), 2, torch.tensor([[1.0, 0.0]]), temperature=10.0)["neighbours"]
    assert warm.tolist() == [0]
