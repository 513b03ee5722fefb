"""A map of images: points in the plane that keep neighbours together (t-SNE; van der Maaten and Hinton, 2008).

p_(j|i) is a Gaussian around point i whose width gives it `PERPLEXITY` neighbours, P their symmetric mean; in the plane
q_ij = (1 + |y_i - y_j|^2)^-1 / sum. The points follow the gradient of KL(P || Q), with P enlarged at first so that
clusters form early. They begin at the first two principal components, so that the same features give the same map.
All pairs are compared: meant for up to some thousand points.
"""

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

Points = Float[Tensor, "point dim"]
Pairs = Float[Tensor, "point point"]
Plane = Float[np.ndarray, "point 2"]

PERPLEXITY = 30.0
STEPS, EARLY = 500, 150
"""Steps in all, and those with enlarged P."""
ENLARGED = 12.0
HALVINGS = 50
"""Of the interval in which the width of a Gaussian lies."""


def flat_map(features: Points, *, perplexity: float = PERPLEXITY, steps: int = STEPS) -> Plane:
    """Return a place in the plane for each row of features."""
    count = len(features)
    if count < 3:
        return np.column_stack([np.arange(count), np.zeros(count)]).astype(np.float64)
    centred = features.double() - features.double().mean(0)
    likely = neighbour_shares(centred, min(perplexity, (count - 1) / 3))
    places = principal(centred)
    rate = max(count / ENLARGED / 4, 50.0)
    speed, gains = torch.zeros_like(places), torch.ones_like(places)
    for step in range(steps):
        slope = gradient(places, likely * (ENLARGED if step < EARLY else 1.0))
        against = speed * slope < 0
        gains = torch.where(against, gains + 0.2, gains * 0.8).clamp_(min=0.01)
        speed = speed * (0.5 if step < EARLY else 0.8) - rate * gains * slope
        places = places + speed
        places = places - places.mean(0)
    return places.numpy()


def squared_distances(points: Points) -> Pairs:
    """Return |a - b|^2 of every two points."""
    squares = points.square().sum(1)
    return (squares[:, None] + squares[None] - 2 * points @ points.mT).clamp_(min=0.0).fill_diagonal_(0.0)


def neighbour_shares(points: Points, perplexity: float) -> Pairs:
    """Return P: for each point a Gaussian of the given perplexity, made symmetric, with a sum of 1."""
    distances = squared_distances(points)
    distances = distances / distances.mean().clamp(min=1e-12)
    others = distances.clone().fill_diagonal_(torch.inf)
    low, high = torch.full((len(points), 1), -20.0).double(), torch.full((len(points), 1), 20.0).double()
    for _ in range(HALVINGS):  # of the logarithm of the precision, where the entropy falls
        middle = (low + high) / 2
        shares = torch.softmax(-others * middle.exp(), dim=1)
        entropy = -torch.special.xlogy(shares, shares).sum(1, keepdim=True)
        wide = entropy > np.log(perplexity)
        low, high = torch.where(wide, middle, low), torch.where(wide, high, middle)
    return ((shares + shares.mT) / (2 * len(points))).clamp_(min=1e-12)


def principal(centred: Points) -> Float[Tensor, "point 2"]:
    """Return the first two principal components, small: the first has a deviation of 1e-4."""
    padded = torch.nn.functional.pad(centred, (0, max(2 - centred.shape[1], 0)))
    _, _, directions = torch.linalg.svd(padded, full_matrices=False)
    signs = directions[:2].gather(1, directions[:2].abs().argmax(1, keepdim=True)).sign()
    places = padded @ (directions[:2] * signs).mT
    return places / places[:, 0].std().clamp(min=1e-12) * 1e-4


def gradient(places: Float[Tensor, "point 2"], likely: Pairs) -> Float[Tensor, "point 2"]:
    """Return dKL/dy_i = 4 sum_j (p_ij - q_ij) (y_i - y_j) / (1 + |y_i - y_j|^2)."""
    close = (1 + squared_distances(places)).reciprocal_().fill_diagonal_(0.0)
    forces = (likely - close / close.sum()) * close
    return 4 * (forces.sum(1, keepdim=True) * places - forces @ places)
