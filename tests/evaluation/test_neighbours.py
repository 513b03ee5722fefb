"""Votes of the nearest neighbours, against scikit-learn."""

import numpy as np
import pytest
import torch
from sklearn.neighbors import KNeighborsClassifier

from tests.evaluation.featuring import made_features
from vitrail.evaluation import neighbours as module
from vitrail.evaluation.neighbours import neighbours


@pytest.mark.parametrize(("count", "most"), [(300, 20), (300, 1), (300, 7), (9, 20)])
def test_answers_are_those_of_scikit_learn(count: int, most: int) -> None:
    values, targets = made_features(count, 12, 6, apart=0.6)
    asked, _ = made_features(400, 12, 6, seed=3, apart=0.6)
    oracle = KNeighborsClassifier(
        n_neighbors=min(most, count), metric="cosine", weights=lambda away: np.exp((1 - away) / 0.07)
    ).fit(values.double().numpy(), targets)
    found = neighbours(values, targets, 6, asked, most=most)["neighbours"]
    assert (found == oracle.predict(asked.double().numpy())).all()
    assert len(np.unique(found)) > 1


def test_pieces_of_the_asked_images_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    values, targets = made_features(50, 8, 3, apart=0.5)
    asked, _ = made_features(41, 8, 3, seed=5, apart=0.5)
    whole = neighbours(values, targets, 3, asked)["neighbours"]
    monkeypatch.setattr(module, "SIMILARITIES", 150)
    assert (neighbours(values, targets, 3, asked)["neighbours"] == whole).all()


def test_the_length_of_a_feature_does_not_matter() -> None:
    values, targets = made_features(50, 8, 3, apart=0.5)
    asked, _ = made_features(41, 8, 3, seed=5, apart=0.5)
    longer = asked * torch.linspace(0.1, 50, 41)[:, None]
    whole = neighbours(values, targets, 3, asked)["neighbours"]
    assert (neighbours(values, targets, 3, longer)["neighbours"] == whole).all()


def test_near_votes_weigh_more_than_many_far_ones() -> None:
    angles = torch.tensor([0.0, 0.6, 0.62, 0.64])
    values = torch.stack([angles.cos(), angles.sin()], dim=1)
    found = neighbours(values, np.array([1, 0, 0, 0]), 2, torch.tensor([[1.0, 0.0]]))["neighbours"]
    assert found.tolist() == [1]  # exp(1 / 0.07) against three times about exp(0.82 / 0.07)
    warm = neighbours(values, np.array([1, 0, 0, 0]), 2, torch.tensor([[1.0, 0.0]]), temperature=10.0)["neighbours"]
    assert warm.tolist() == [0]
