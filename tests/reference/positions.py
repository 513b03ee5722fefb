"""Positions in NumPy: 2-D tables, sines and cosines, and bilinear resizing with aligned corners, by loops."""

import numpy as np


def learned_2d(x, y):
    """App. D.4: the column's half, then the row's half, in raster order."""
    return np.array([np.concatenate([across, down]) for down in y for across in x])


def sincos_2d(dim, grid):
    """[sin x w, cos x w, sin y w, cos y w] with w = 10000^(-i / (D/4 - 1))."""
    quarter = dim // 4
    table = np.zeros((grid[0] * grid[1], dim))
    for row in range(grid[0]):
        for column in range(grid[1]):
            for i in range(quarter):
                w = 10000.0 ** (-i / (quarter - 1))
                values = np.sin(column * w), np.cos(column * w), np.sin(row * w), np.cos(row * w)
                table[row * grid[1] + column, i::quarter] = values
    return table


def resize_align_corners(table, old, new):
    """Bilinear interpolation of a (rows * columns, D) table, the corner entries staying where they are."""
    cells = table.reshape(*old, -1)

    def places(before, after):
        step = (before - 1) / (after - 1) if after > 1 else 0.0
        for place in (number * step for number in range(after)):
            low = min(int(place), before - 1)
            yield low, min(low + 1, before - 1), place - low

    resized = [
        (1 - dy) * ((1 - dx) * cells[top, left] + dx * cells[top, right])
        + dy * ((1 - dx) * cells[bottom, left] + dx * cells[bottom, right])
        for top, bottom, dy in places(old[0], new[0])
        for left, right, dx in places(old[1], new[1])
    ]
    return np.array(resized)
