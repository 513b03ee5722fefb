"""What a class loses when a part of the image is covered (Zeiler and Fergus, 2014): for any network."""

from collections.abc import Callable

import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from vitrail.analysis.cells import Cells, Colour
from vitrail.base.shapes import PixelBatch

Probabilities = Callable[[PixelBatch], Float[Tensor, "batch class"]]
"""From pixels to the probability of every class."""

BATCH = 32
"""Images that go through the network at once."""


def occlusion(
    probabilities: Probabilities,
    pixels: UInt8[Tensor, "channel height width"],
    classes: list[int],
    *,
    cells: Cells,
    colour: Colour,
    batch: int = BATCH,
) -> Float[Tensor, "class rows columns"]:
    """Return how much the probability of each class falls when each cell is covered, one after the other."""
    whole = probabilities(pixels[None])[:, classes]
    falls = []
    for start in range(0, len(cells), batch):
        count = min(batch, len(cells) - start)
        covered = torch.zeros(count, len(cells), dtype=torch.bool)
        covered[torch.arange(count), start + torch.arange(count)] = True
        occluded = cells.cover(pixels.expand(count, -1, -1, -1), covered, colour)
        falls.append(whole - probabilities(occluded)[:, classes])
    return torch.cat(falls).T.unflatten(1, cells.grid)
