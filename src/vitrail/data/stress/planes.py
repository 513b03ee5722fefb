"""Images while they are changed: channels of fractions from 0 to 255, moved and smoothed by linear maps."""

from functools import lru_cache
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float, Int

from vitrail.base.shapes import Pixels

Planes = Float[np.ndarray, "channel height width"]
"""The channels of one image, from 0 to 255."""
Plane = Float[np.ndarray, "height width"]
Places = Float[np.ndarray, "place_rows place_columns"]
Sampled = Float[np.ndarray, "channel place_rows place_columns"]
LineMap = Float[np.ndarray, "new old"]
"""How much each old pixel of a line counts for each new one."""
Number = int | float
Border = Literal["nearest", "reflect", "mirror"]
"""What lies beyond an edge: its last pixel; the image reflected with its last pixel; or without it."""


def planes_of(pixels: Pixels) -> Planes:
    """Return an image as fractions."""
    return pixels.numpy(force=True).astype(np.float64)


def pixels_of_planes(planes: Planes) -> Pixels:
    """Cut values to 0 to 255, and round them."""
    return torch.from_numpy(np.rint(np.clip(planes, 0, 255)).astype(np.uint8))


def inside(places: Int[np.ndarray, "*any"], size: int, border: Border) -> Int[np.ndarray, "*any"]:
    """Return the pixel of a line of `size` that stands for each place, inside or beyond its ends."""
    if border == "nearest":
        return np.clip(places, 0, size - 1)
    if border == "reflect":
        places = places % (2 * size)
        return np.minimum(places, 2 * size - 1 - places)
    period = max(2 * size - 2, 1)
    places = places % period
    return np.minimum(places, period - places)


@lru_cache(maxsize=64)
def gaussian_map(size: int, sigma: float, truncate: float, border: Border) -> LineMap:
    """Return the map that smooths a line by a Gaussian of `sigma` pixels, cut at `truncate` sigmas."""
    radius = int(truncate * sigma + 0.5)
    if not radius:
        return np.eye(size)
    offsets = np.arange(-radius, radius + 1)
    weights = np.exp(-0.5 * (offsets / sigma) ** 2)
    return _filter_map(size, offsets, weights / weights.sum(), border)


def smooth(planes: Planes, sigma: Number, *, truncate: float = 4.0, border: Border = "nearest") -> Planes:
    """Smooth every channel by a Gaussian of `sigma` pixels."""
    rows = gaussian_map(planes.shape[1], float(sigma), truncate, border)
    columns = gaussian_map(planes.shape[2], float(sigma), truncate, border)
    return rows @ planes @ columns.T


@lru_cache(maxsize=256)
def zoom_map(size: int, factor: float) -> LineMap:
    """Return the map that magnifies the middle of a line: its first pixel to the first, its last to the last."""
    kept = int(np.ceil(size / factor))
    start = (size - kept) // 2
    grown = max(round(kept * factor), size)
    trim = (grown - size) // 2
    places = (np.arange(size) + trim) * ((kept - 1) / (grown - 1) if grown > 1 else 0.0)
    before = np.minimum(np.floor(places).astype(int), max(kept - 2, 0))
    share = places - before
    weights = np.zeros((size, size))
    weights[np.arange(size), start + before] = 1 - share
    weights[np.arange(size), start + np.minimum(before + 1, kept - 1)] += share
    return weights


def magnify(planes: Planes, factor: Number) -> Planes:
    """Magnify the middle of an image, bilinearly; its size stays."""
    return zoom_map(planes.shape[1], float(factor)) @ planes @ zoom_map(planes.shape[2], float(factor)).T


def sample(planes: Planes, rows: Places, columns: Places, border: Border) -> Sampled:
    """Look up an image at fractional places, bilinearly."""
    _, height, width = planes.shape
    top, left = np.floor(rows).astype(int), np.floor(columns).astype(int)
    down, right = rows - top, columns - left
    above, below = inside(top, height, border), inside(top + 1, height, border)
    before, behind = inside(left, width, border), inside(left + 1, width, border)
    upper = planes[:, above, before] * (1 - right) + planes[:, above, behind] * right
    lower = planes[:, below, before] * (1 - right) + planes[:, below, behind] * right
    return upper * (1 - down) + lower * down


def convolve(planes: Planes, kernel: Float[np.ndarray, "size size"]) -> Planes:
    """Weigh the neighbourhood of each pixel by a kernel; beyond an edge the image is mirrored."""
    radius = kernel.shape[0] // 2
    _, height, width = planes.shape
    rows = inside(np.arange(-radius, height + radius), height, "mirror")
    columns = inside(np.arange(-radius, width + radius), width, "mirror")
    padded = planes[:, rows[:, None], columns]
    size = (padded.shape[1], padded.shape[2])
    waves = np.fft.rfft2(padded) * np.fft.rfft2(kernel[::-1, ::-1], size)
    return np.fft.irfft2(waves, size)[:, 2 * radius :, 2 * radius :]


def grey_of(planes: Planes) -> Plane:
    """Return the luma (ITU-R 601) of red, green and blue, or the mean of other channels."""
    if planes.shape[0] == 3:
        return np.tensordot((0.299, 0.587, 0.114), planes, axes=1)
    return planes.mean(axis=0)


def _filter_map(
    size: int, offsets: Int[np.ndarray, "tap"], weights: Float[np.ndarray, "tap"], border: Border
) -> LineMap:
    lines = np.zeros((size, size))
    for offset, weight in zip(offsets, weights, strict=True):
        np.add.at(lines, (np.arange(size), inside(np.arange(size) + offset, size, border)), weight)
    return lines
