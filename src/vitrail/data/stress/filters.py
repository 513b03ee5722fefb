"""Parts of an image taken away: fine or coarse frequencies, or texture."""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float

from vitrail.base.shapes import Pixels
from vitrail.data.stress.planes import Plane, Planes, grey_of, inside, pixels_of_planes, planes_of


def low_pass(pixels: Pixels, cut: float) -> Pixels:
    """Keep frequencies up to `cut`, as a share of the highest one along an axis (half a cycle a pixel)."""
    return _filtered(pixels, lambda radius: radius <= cut)


def high_pass(pixels: Pixels, cut: float) -> Pixels:
    """Keep frequencies from `cut` on, and the mean colour."""
    return _filtered(pixels, lambda radius: (radius >= cut) | (radius == 0))


def without_texture(pixels: Pixels, radius: int) -> Pixels:
    """Paint every pixel in the mean colour of the calmest of the four squares that have it at a corner (Kuwahara).

    Edges stay where they are, and what is between them becomes flat. Squares have `radius` + 1 pixels a side; the
    calmest is the one whose grey varies least, of equal ones the first: above left, above right, below left, below
    right.
    """
    planes = planes_of(pixels)
    grey = np.rint(grey_of(planes))
    side, count = radius + 1, (radius + 1) ** 2
    wide = _padded(planes, radius)
    grey = _padded(grey[None], radius)
    means = _box_sums(wide, side) / count
    spread = _box_sums(grey**2, side)[0] / count - (_box_sums(grey, side)[0] / count) ** 2
    _, height, width = planes.shape
    corners = [(0, 0), (0, radius), (radius, 0), (radius, radius)]
    spreads = np.stack([spread[top : top + height, left : left + width] for top, left in corners])
    choices = np.stack([means[:, top : top + height, left : left + width] for top, left in corners])
    calmest = spreads.argmin(axis=0)
    return pixels_of_planes(np.take_along_axis(choices, calmest[None, None], axis=0)[0])


def radii(height: int, width: int) -> Plane:
    """Return the frequency of each cell of a Fourier transform, as a share of the highest one along an axis."""
    return 2 * np.hypot(np.fft.fftfreq(height)[:, None], np.fft.fftfreq(width))


def _filtered(pixels: Pixels, keeps: Callable[[Plane], np.ndarray]) -> Pixels:
    planes = planes_of(pixels)
    waves = np.fft.fft2(planes) * keeps(radii(*planes.shape[1:]))
    return pixels_of_planes(np.fft.ifft2(waves).real)


def _padded(planes: Planes, radius: int) -> Float[np.ndarray, "channel padded_height padded_width"]:
    _, height, width = planes.shape
    rows = inside(np.arange(-radius, height + radius), height, "reflect")
    return planes[:, rows[:, None], inside(np.arange(-radius, width + radius), width, "reflect")]


def _box_sums(
    planes: Float[np.ndarray, "channel padded_height padded_width"], side: int
) -> Float[np.ndarray, "channel box_height box_width"]:
    """Sum over every square of `side` pixels; whole levels sum exactly."""
    sums = np.pad(planes.cumsum(axis=1).cumsum(axis=2), ((0, 0), (1, 0), (1, 0)))
    return sums[:, side:, side:] - sums[:, :-side, side:] - sums[:, side:, :-side] + sums[:, :-side, :-side]
