import numpy as np
import torch
from sklearn.decomposition import PCA

from tests.tiny import close
from vitrail.analysis.filters import principal_filters


def test_components_are_those_of_scikit_learn() -> None:
    filters = torch.randn(40, 3, 4, 5) * torch.linspace(0.2, 2, 60).reshape(3, 4, 5)
    found = principal_filters(filters)
    pca = PCA(n_components=28, svd_solver="full").fit(filters.flatten(1).double().numpy())
    assert found.directions.shape == (28, 3, 4, 5)
    close(found.shares, pca.explained_variance_ratio_, 1e-6)
    theirs = pca.components_ * np.sign((pca.components_ * found.directions.flatten(1).numpy()).sum(axis=1))[:, None]
    close(found.directions.flatten(1), theirs, 1e-6)
    largest = found.directions.flatten(1).gather(1, found.directions.flatten(1).abs().argmax(dim=1, keepdim=True))
    assert (largest > 0).all()


def test_fewer_filters_have_fewer_components_and_equal_ones_explain_nothing() -> None:
    few = principal_filters(torch.randn(8, 1, 7, 7))
    assert few.directions.shape == (7, 1, 7, 7)
    assert (few.shares > 1e-6).all()
    close(few.shares.sum(), torch.ones(()), 1e-9)
    assert len(principal_filters(torch.randn(1, 3, 2, 2)).directions) == 1
    assert principal_filters(torch.ones(5, 3, 2, 2)).shares.sum() == 0
