"""Resizing written out in NumPy with float64: one matrix for the rows, one for the columns.

Old pixel `i` covers `[i, i + 1)`; new pixel `j` has its centre at `(j + 0.5) * scale`. Its weights are a kernel of the
distance between centres, in old pixels; with antialiasing, a shrinking image widens the kernel by the scale and
pixels outside count nothing; without it the kernel keeps its width and the edge pixel repeats. Weights sum to one.
"""

from functools import cache

import numpy as np


def _cubic(a: float):
    def kernel(x: np.ndarray) -> np.ndarray:
        near = (a + 2) * x**3 - (a + 3) * x**2 + 1
        far = a * x**3 - 5 * a * x**2 + 8 * a * x - 4 * a
        return np.where(x < 1, near, np.where(x < 2, far, 0))

    return kernel


def _kernel(interpolation: str, antialias: bool):
    """The kernel, and how far it reaches."""
    return {
        "bilinear": (lambda x: np.clip(1 - x, 0, None), 1),
        "bicubic": (_cubic(-0.5 if antialias else -0.75), 2),
        "lanczos": (lambda x: np.where(x < 3, np.sinc(x) * np.sinc(x / 3), 0), 3),
    }[interpolation]


@cache
def matrix(old: int, new: int, interpolation: str, antialias: bool) -> np.ndarray:
    """Weights of shape new x old."""
    weights = np.zeros((new, old))
    scale = old / new
    for row in range(new):
        centre = (row + 0.5) * scale
        if interpolation == "nearest":
            weights[row, (2 * row + 1) * old // (2 * new)] = 1
            continue
        kernel, reach = _kernel(interpolation, antialias)
        width = max(scale, 1.0) if antialias else 1.0
        for place in range(int(centre - reach * width) - 2, int(centre + reach * width) + 3):
            weight = float(kernel(np.abs(place + 0.5 - centre) / width))
            if 0 <= place < old or not antialias:
                weights[row, min(max(place, 0), old - 1)] += weight
    return weights / weights.sum(1, keepdims=True)


def resize(image: np.ndarray, size: tuple[int, int], interpolation: str, antialias: bool) -> np.ndarray:
    """Resize height x width x channel to height x width, clipped but not rounded."""
    rows, columns = _matrices(image, size, interpolation, antialias)
    return np.clip(np.einsum("hy,wx,yxc->hwc", rows, columns, image.astype(np.float64), optimize=True), 0, 255)


def resize_in_steps(
    image: np.ndarray, size: tuple[int, int], interpolation: str, antialias: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Resize rounding and clipping in between, columns first and rows first, as programs for whole numbers do."""
    rows, columns = _matrices(image, size, interpolation, antialias)
    columns_first = np.einsum("hy,ywc->hwc", rows, _whole(np.einsum("wx,yxc->ywc", columns, image)))
    rows_first = np.einsum("wx,hxc->hwc", columns, _whole(np.einsum("hy,yxc->hxc", rows, image)))
    return _whole(columns_first), _whole(rows_first)


def _matrices(image, size, interpolation, antialias) -> tuple[np.ndarray, np.ndarray]:
    return (
        matrix(image.shape[0], size[0], interpolation, antialias),
        matrix(image.shape[1], size[1], interpolation, antialias),
    )


def _whole(values: np.ndarray) -> np.ndarray:
    return np.clip(np.round(values), 0, 255)
