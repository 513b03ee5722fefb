"""Features with a mean of 0 and a deviation of 1 on the training images, a few rows at a time."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from vitrail.evaluation.features import Matrix

Row = Float[Tensor, "representation"]

EPSILON = 1e-5
"""Added to every deviation."""
VALUES = 2**20
"""Numbers in float64 that are computed at a time: 8 MiB, which is also faster than more."""


def rows_at_once(*widths: int) -> int:
    """Return how many rows of the widest matrix are computed at a time."""
    return max(VALUES // max(widths), 1)


@dataclass(frozen=True, kw_only=True, eq=False)
class Whitening:
    """(x - mean) / std, in float64."""

    mean: Row
    std: Row
    """The deviation over all training images (not the estimate with N - 1), and 1e-5."""

    @classmethod
    def of(cls, features: Matrix) -> "Whitening":
        """Measure the training images, in two passes."""
        parts = features.split(rows_at_once(features.shape[1]))
        mean = torch.stack([part.sum(0, dtype=torch.float64) for part in parts]).sum(0) / len(features)
        squares = torch.stack([(part.double() - mean).square_().sum(0) for part in parts]).sum(0)
        return cls(mean=mean, std=(squares / len(features)).sqrt() + EPSILON)

    def __call__(self, features: Matrix) -> Matrix:
        """Whiten some rows, all at once."""
        return (features.double() - self.mean).div_(self.std)

    def parts(self, features: Matrix, *widths: int) -> Iterator[tuple[slice, Matrix]]:
        """Yield whitened rows, some at a time, with their places; `widths` are those of the matrices made from them."""
        step = rows_at_once(features.shape[1], *widths)
        for start in range(0, len(features), step):
            rows = slice(start, min(start + step, len(features)))
            yield rows, self(features[rows])
