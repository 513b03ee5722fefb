"""Gaussian blur on uint8, as two matrix products: one for the rows of an image and one for its columns.

The weights are whole numbers of which every sum is exact in float32, so that an image comes out the same in any batch.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float32
from torch import Tensor

from vitrail.base.shapes import PixelBatch
from vitrail.data.augment.geometry import ONE, weighted

REACH = 3.0
"""Deviations after which the bell is cut off."""

Mixing = Float32[Tensor, "batch side side"]


def blur(images: PixelBatch, deviations: Sequence[float]) -> PixelBatch:
    """Blur each image by a Gaussian with a deviation of its own, in pixels; past the edge, the edge repeats."""
    rows = mixing(images.shape[2], deviations)
    columns = rows if images.shape[2] == images.shape[3] else mixing(images.shape[3], deviations)
    narrowed = weighted(columns, images.permute(0, 3, 2, 1).float())
    return weighted(rows, narrowed.transpose(1, 2)).to(torch.uint8).permute(0, 3, 1, 2)


def mixing(side: int, deviations: Sequence[float]) -> Mixing:
    """Return how much each pixel of a line counts for each blurred one, for each deviation."""
    reach = int(REACH * max(deviations) + 0.5)
    offsets = torch.arange(-reach, reach + 1)
    places = (torch.arange(side)[:, None] + offsets).clamp_(0, side - 1).expand(len(deviations), -1, -1)
    weights = torch.stack([bell(deviation, offsets) for deviation in deviations])
    matrix = torch.zeros(len(deviations), side, side)
    return matrix.scatter_add_(2, places, weights[:, None].expand(-1, side, -1))


def bell(deviation: float, offsets: Tensor) -> Float32[Tensor, " offset"]:
    """Return exp(-x^2 / 2 s^2) at whole offsets x within reach, as whole parts of `ONE` that sum to it."""
    weights = torch.exp(-(offsets.double() ** 2) / (2 * deviation**2))
    weights[offsets.abs() > int(REACH * deviation + 0.5)] = 0.0
    parts = (weights / weights.sum() * ONE).round_()
    parts[offsets == 0] += ONE - parts.sum()
    return parts.float()
