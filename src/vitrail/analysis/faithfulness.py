"""Whether a map can be trusted: deletion and insertion (Petsiuk et al., 2018), against random maps.

Deletion covers the cells of an image from the most important to the least, and follows the probability of a class: the
faster it falls, the better the map. Insertion uncovers a covered image in the same order: the faster it rises, the
better. Both are areas under the curve, from 0 to 1.
"""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int, UInt8
from torch import Tensor

from vitrail.analysis.cells import Cells, Colour
from vitrail.analysis.occlusion import BATCH, Probabilities
from vitrail.base.seeds import key, keys, uniform

Order = Int[Tensor, "cell"]
Curve = Float[np.ndarray, "point"]

POINTS = 17
"""Places of a curve, from nothing covered to everything."""
RANDOM_MAPS = 4
"""How many random maps each map is compared with."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Curves:
    """The probability of a class while cells are covered, and while they are uncovered, in the order of a map."""

    shares: Curve
    """The share of the cells at each point, from 0 to 1."""
    deletion: Curve
    """The probability with that share covered."""
    insertion: Curve
    """The probability with that share uncovered."""

    @property
    def deletion_area(self) -> float:
        """The mean probability while cells are covered; lower is better."""
        return float(np.trapezoid(self.deletion, self.shares))

    @property
    def insertion_area(self) -> float:
        """The mean probability while cells are uncovered; higher is better."""
        return float(np.trapezoid(self.insertion, self.shares))


def order_of(values: Float[Tensor, "cell"], seed: int, *path: str | int) -> Order:
    """Order cells from the most important to the least; equal ones in a random order, which depends on the path."""
    ties = torch.from_numpy(_draws(len(values), seed, *path))
    shuffled = ties.argsort()
    return shuffled[values.double().cpu()[shuffled].argsort(descending=True, stable=True)]


def random_order(cells: int, seed: int, *path: str | int) -> Order:
    """Order cells at random; the same path always gives the same order."""
    return torch.from_numpy(_draws(cells, seed, *path)).argsort()


def measure(
    probabilities: Probabilities,
    pixels: UInt8[Tensor, "channel height width"],
    number: int,
    order: Order,
    *,
    cells: Cells,
    colour: Colour,
    points: int = POINTS,
    batch: int = BATCH,
) -> Curves:
    """Follow the probability of class `number` while the cells are covered, and uncovered, in order."""
    counts = torch.linspace(0, len(cells), min(points, len(cells) + 1)).round().long()
    rank = torch.empty(len(cells), dtype=torch.long)
    rank[order] = torch.arange(len(cells))
    deleted = rank < counts[:, None]
    covered = torch.cat([deleted, ~deleted])
    values = [
        probabilities(cells.cover(pixels.expand(len(part), -1, -1, -1), part, colour))[:, number]
        for part in covered.split(batch)
    ]
    deletion, insertion = torch.cat(values).double().cpu().numpy().reshape(2, -1)
    return Curves(shares=counts.numpy() / len(cells), deletion=deletion, insertion=insertion)


def _draws(count: int, seed: int, *path: str | int) -> Float[np.ndarray, "cell"]:
    return uniform(keys(key(seed, *path), np.arange(count)), 1)[:, 0]
