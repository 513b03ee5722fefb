"""How alike positions are: the cosine of each with all others, as a grid of grids (Fig. 7 centre, Fig. 10)."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from vitrail.model.patches import Size

Grids = Float[Tensor, "shown rows columns"]

MOST = 16
"""Rows and columns of small grids that a picture has at most; of a larger grid every second, third, ... is shown."""
FAR = 4
"""Patches between positions that count as far from each other."""


def shown_patches(grid: Size, most: int = MOST) -> tuple[Int[Tensor, "shown"], Size]:
    """Return the patches whose similarities are shown, and how many rows and columns they are."""
    rows, columns = (torch.arange(0, side, -(-side // most)) for side in grid)
    return (rows[:, None] * grid[1] + columns).flatten(), (len(rows), len(columns))


def position_similarity(table: Float[Tensor, "patch width"], grid: Size, shown: Int[Tensor, "shown"]) -> Grids:
    """Return the cosine between the position of each shown patch and those of all patches; 0 for a zero vector."""
    unit = torch.nn.functional.normalize(table.double(), dim=1)
    return (unit[shown] @ unit.T).unflatten(1, grid)


def offset_similarity(offsets: Float[Tensor, "offset width"], grid: Size, shown: Int[Tensor, "shown"]) -> Grids:
    """Return, of relative positions, the cosine between the offset of each pair of patches and the offset 0.

    Offsets are those of the sequence, p_q - p_k in raster order (App. D.4): the patch above is a whole row away.
    """
    unit = torch.nn.functional.normalize(offsets.double(), dim=1)
    middle = len(offsets) // 2
    alike = unit @ unit[middle]
    keys = torch.arange(grid[0] * grid[1])
    return alike[shown[:, None] - keys + middle].unflatten(1, grid)


def near_and_far(cosines: Grids, shown: Int[Tensor, "shown"]) -> tuple[float, float]:
    """Return the mean cosine with the four neighbours of a patch, and with patches at least 4 away.

    Where positions have the structure of the grid, the first is the higher. NaN on a grid without such patches.
    """
    rows, columns = cosines.shape[1:]
    down = torch.arange(rows) - (shown // columns)[:, None]
    right = torch.arange(columns) - (shown % columns)[:, None]
    apart = torch.hypot(down[:, :, None].float(), right[:, None].float())
    return float(cosines[apart == 1].mean()), float(cosines[apart >= FAR].mean())
