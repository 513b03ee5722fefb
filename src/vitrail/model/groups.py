"""Patches of a grid in groups of equal size: rows and columns, windows, stretches and strides.

A group is a row of numbers of patches, in raster order of the grid; -1 fills a group that has fewer than the others.
"""

import numpy as np
from jaxtyping import Int

from vitrail.model.patches import Size

Groups = Int[np.ndarray, "group member"]


def raster(grid: Size) -> Int[np.ndarray, "rows columns"]:
    """Return the number of each patch, at its place."""
    return np.arange(grid[0] * grid[1]).reshape(grid)


def axial_groups(grid: Size, layer: int) -> Groups:
    """Return the rows in even layers and the columns in odd ones."""
    return raster(grid) if layer % 2 == 0 else np.ascontiguousarray(raster(grid).T)


def window_groups(grid: Size, size: int, layer: int) -> Groups:
    """Cut the grid into windows; in odd layers the first window begins half a window before the grid."""
    high, wide = min(size, grid[0]), min(size, grid[1])
    above, left = (high // 2, wide // 2) if layer % 2 else (0, 0)
    below, right = -(grid[0] + above) % high, -(grid[1] + left) % wide
    padded = np.pad(raster(grid), ((above, below), (left, right)), constant_values=-1)
    rows, columns = padded.shape[0] // high, padded.shape[1] // wide
    return padded.reshape(rows, high, columns, wide).swapaxes(1, 2).reshape(rows * columns, high * wide)


def stretch_groups(grid: Size, stride: int) -> Groups:
    """Cut the sequence into stretches of `stride` patches."""
    count = grid[0] * grid[1]
    return np.pad(raster(grid).reshape(-1), (0, -count % stride), constant_values=-1).reshape(-1, stride)


def stride_groups(grid: Size, stride: int) -> Groups:
    """Put every patch with those a multiple of `stride` away."""
    return np.ascontiguousarray(stretch_groups(grid, stride).T)
