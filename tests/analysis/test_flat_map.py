"""The map against its definition, autograd and scikit-learn."""

import numpy as np
import pytest
import torch
from scipy.stats import entropy
from sklearn.manifold import TSNE, trustworthiness

from vitrail.analysis.flat_map import flat_map, gradient, neighbour_shares, squared_distances


def points(count: int = 90, width: int = 8) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    centres = 5 * torch.eye(3, width)
    return centres.repeat_interleave(count // 3, 0) + torch.randn(count, width, generator=generator)


def test_shares_are_gaussians_of_the_asked_perplexity() -> None:
    x = points(30).double()
    shares = neighbour_shares(x, 5.0).numpy()
    assert shares.sum() == pytest.approx(1)
    assert np.allclose(shares, shares.T)
    distances = ((x[:, None] - x[None]) ** 2).sum(2).numpy()
    assert np.allclose(squared_distances(x).numpy(), distances)
    conditional = np.zeros_like(distances)
    for one in range(30):  # the width by bisection, as the paper of t-SNE has it
        others = np.delete(np.arange(30), one)
        low, high = 1e-9, 1e9
        for _ in range(200):
            middle = np.sqrt(low * high)
            row = np.exp(-(distances[one, others] - distances[one, others].min()) * middle)
            row /= row.sum()
            low, high = (middle, high) if entropy(row) > np.log(5.0) else (low, middle)
        conditional[one, others] = row
    assert np.allclose(shares, (conditional + conditional.T) / 60, atol=1e-8)


def test_the_gradient_is_that_of_the_divergence() -> None:
    likely = neighbour_shares(points(12).double(), 3.0)
    places = torch.randn(12, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(1)).requires_grad_()
    close = 1 / (1 + ((places[:, None] - places[None]) ** 2).sum(2))
    close = close * (1 - torch.eye(12))
    unlike = close / close.sum()
    off = ~torch.eye(12, dtype=torch.bool)
    (likely[off] * (likely[off] / unlike[off]).log()).sum().backward()
    ours = gradient(places.detach(), likely * off)
    assert torch.allclose(ours, places.grad, atol=1e-9)


def test_neighbours_stay_together_as_well_as_scikit_learn_keeps_them() -> None:
    x = points()
    ours = flat_map(x)
    theirs = TSNE(init="pca", random_state=0, perplexity=29.0).fit_transform(x.numpy())
    assert trustworthiness(x.numpy(), ours) > trustworthiness(x.numpy(), theirs) - 0.02
    nearest = np.argsort(((ours[:, None] - ours[None]) ** 2).sum(2) + 1e9 * np.eye(90), axis=1)[:, 0]
    assert (nearest // 30 == np.arange(90) // 30).all()
    assert np.array_equal(flat_map(x), ours)


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_few_points_have_places_of_their_own(count) -> None:
    places = flat_map(points(6)[:count])
    assert places.shape == (count, 2)
    assert np.isfinite(places).all()
    assert len({tuple(place) for place in places}) == count
    assert np.isfinite(flat_map(torch.zeros(count, 1))).all()
