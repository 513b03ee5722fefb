"""What the first layer sees: the principal components of its filters (Fig. 7 left)."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from vitrail.base.shapes import Kernel

COMPONENTS = 28
"""How many the paper shows."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Components:
    """Directions in which filters differ most, the strongest first."""

    directions: Float[Tensor, "component channel height width"]
    """Of length 1 and at right angles; the value that is largest in size is above 0."""
    shares: Float[Tensor, "component"]
    """The part of the variance of all filters that each explains."""


def principal_filters(filters: Kernel, count: int = COMPONENTS) -> Components:
    """Return the first principal components of filters, each filter being one observation of C P P values."""
    rows = filters.double().flatten(1)
    centred = rows - rows.mean(dim=0)
    _, strengths, directions = torch.linalg.svd(centred, full_matrices=False)
    largest = directions.gather(1, directions.abs().argmax(dim=1, keepdim=True))
    directions = directions * torch.where(largest < 0, -1.0, 1.0)
    variance = strengths.square()
    total = variance.sum()
    shares = variance / total if total > 0 else torch.zeros_like(variance)
    shown = min(count, max(len(rows) - 1, 1), len(directions))  # n filters differ in n - 1 directions
    return Components(directions=directions[:shown].unflatten(1, filters.shape[1:]), shares=shares[:shown])
