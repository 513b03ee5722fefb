"""An image cut into tiles that change places: every pixel stays, their order does not."""

import numpy as np
import torch
from jaxtyping import Int

from vitrail.base.shapes import Pixels
from vitrail.data.stress.draws import Draws

Order = Int[np.ndarray, "tile"]
"""Which tile lies at each place, in raster order."""


def rearrange(pixels: Pixels, grid: tuple[int, int], order: Order) -> Pixels:
    """Cut into rows x columns of equal tiles and put them into another order; pixels that remain over stay."""
    channels, height, width = pixels.shape
    (rows, columns), (tall, wide) = grid, (height // grid[0], width // grid[1])
    cut = pixels[:, : rows * tall, : columns * wide]
    tiles = cut.reshape(channels, rows, tall, columns, wide).permute(1, 3, 0, 2, 4).flatten(0, 1)
    tiles = tiles[torch.from_numpy(order)].unflatten(0, grid)
    moved = pixels.clone()
    moved[:, : rows * tall, : columns * wide] = tiles.permute(2, 0, 3, 1, 4).reshape(cut.shape)
    return moved


def shuffled(count: int, draws: Draws) -> Order:
    """Draw an order of all tiles."""
    return draws.permutation("order", count)


def partly_shuffled(count: int, share: float, draws: Draws) -> Order:
    """Draw an order in which a share of the tiles change places among each other; more have them among theirs."""
    order = np.arange(count)
    moved = draws.permutation("moved", count)[: round(share * count)]
    order[np.sort(moved)] = moved[np.argsort(draws.uniform("order", count)[moved], kind="stable")]
    return order
