"""Random numbers of one image under one stress: a function of names and numbers, never of what was drawn before.

Models, batches and the strength of a stress share them: noise of a higher severity is the same noise, only stronger.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from jaxtyping import Float, Int, UInt8

from vitrail.base.seeds import key, uniform

Counts = Int[np.ndarray, "*any"]
Fractions = Float[np.ndarray, "*any"]


@dataclass(frozen=True, kw_only=True)
class Draws:
    """The streams of one image, by name."""

    seed: int
    stress: str
    row: int
    """Which picture of its source the image is."""

    def uniform(self, name: str, *shape: int) -> Fractions:
        """Draw numbers in [0, 1)."""
        root = key(self.seed, "stress", self.stress, self.row, name)
        return uniform(np.array([root], np.uint64), int(np.prod(shape)))[0].reshape(shape)

    def normal(self, name: str, *shape: int) -> Fractions:
        """Draw from a unit normal (Box and Muller)."""
        first, second = self.uniform(name, 2, *shape)
        return np.sqrt(-2 * np.log1p(-first)) * np.cos(2 * np.pi * second)

    def whole(self, name: str, low: int, high: int, *shape: int) -> Counts:
        """Draw whole numbers from `low` to before `high`."""
        return low + np.floor(self.uniform(name, *shape) * (high - low)).astype(np.int64)

    def permutation(self, name: str, count: int) -> Counts:
        """Draw an order of `count` things."""
        return np.argsort(self.uniform(name, count), kind="stable")

    def poisson(self, name: str, levels: UInt8[np.ndarray, "*any"], photons: int | float) -> Counts:
        """Draw Poisson counts of mean `photons` x level / 255, by the inverse of the distribution."""
        table = poisson_table(photons)
        chances = self.uniform(name, *levels.shape)
        # Row after row of the table, each above the one before: one search finds the place of every chance.
        places = np.searchsorted((table + np.arange(256)[:, None]).ravel(), (chances + levels).ravel(), side="right")
        return np.minimum(places.reshape(levels.shape) - levels.astype(np.int64) * table.shape[1], table.shape[1] - 1)


@lru_cache(maxsize=8)
def poisson_table(photons: int | float) -> Float[np.ndarray, "256 count"]:
    """Return the chance of at most k for means of 0 to `photons` in 255 steps."""
    means = np.arange(256)[:, None] / 255 * photons
    counts = np.arange(int(photons + 12 * np.sqrt(photons)) + 20)
    logs = np.concatenate([[0.0], np.cumsum(np.log(counts[1:]))])
    with np.errstate(divide="ignore", invalid="ignore"):
        chances = np.exp(np.where(counts == 0, 0.0, counts * np.log(means)) - means - logs)
    return np.minimum(np.cumsum(chances, axis=1), 1.0)
