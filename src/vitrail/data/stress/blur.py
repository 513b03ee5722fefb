"""Blur (Hendrycks and Dietterich, 2019): out of focus, through glass, in motion, while zooming."""

import numpy as np
from jaxtyping import Float

from vitrail.data.stress.draws import Draws
from vitrail.data.stress.planes import Number, Planes, convolve, inside, magnify, smooth

Kernel = Float[np.ndarray, "size size"]


def defocus_blur(planes: Planes, draws: Draws, radius: Number, softness: Number) -> Planes:  # noqa: ARG001 - it is fixed
    """Spread every pixel over a disk, whose edge is softened by a Gaussian of `softness` pixels."""
    return convolve(planes, disk(radius, softness))


def disk(radius: Number, softness: Number) -> Kernel:
    """Return a disk that sums to 1; to 1.01 where its soft edge is mirrored into it, as in the published program."""
    reach = 8 if radius <= 8 else int(np.ceil(radius))
    offsets = np.arange(-reach, reach + 1)
    hard = (offsets[:, None] ** 2 + offsets**2 <= radius**2).astype(np.float64)
    taps = np.arange(-1, 2) if radius <= 8 else np.arange(-2, 3)
    weights = np.exp(-(taps**2) / (2 * softness**2))
    weights /= weights.sum()
    lines = np.zeros((len(offsets),) * 2)
    for tap, weight in zip(taps, weights, strict=True):
        np.add.at(
            lines, (np.arange(len(offsets)), inside(np.arange(len(offsets)) + tap, len(offsets), "mirror")), weight
        )
    return lines @ (hard / hard.sum()) @ lines.T


def glass_blur(planes: Planes, draws: Draws, sigma: Number, reach: int, rounds: int) -> Planes:
    """Smooth, replace each pixel by one near it, `rounds` times from the last to the first, and smooth again.

    The paper says that pixels are shuffled; its program, and so its images, copy the neighbour, as here.
    """
    channels, height, width = planes.shape
    soft = np.floor(np.clip(smooth(planes, sigma), 0, 255)).reshape(channels, -1)
    rows, columns = np.arange(height - reach, reach, -1), np.arange(width - reach, reach, -1)
    sources = list(range(height * width))
    if len(rows) and len(columns):
        places = (rows[:, None] * width + columns).ravel()
        for number in range(rounds):
            down, right = draws.whole(f"moves {number}", -reach, reach, 2, len(places))
            for place, source in zip(places.tolist(), (places + down * width + right).tolist(), strict=True):
                sources[place] = sources[source]
    return smooth(soft[:, sources].reshape(planes.shape), sigma)


def motion_blur(planes: Planes, draws: Draws, radius: int, sigma: Number) -> Planes:
    """Smear in a direction between -45 and 45 degrees from the horizontal."""
    return smear(planes, radius, sigma, 90 * float(draws.uniform("angle", 1)[0]) - 45)


def smear(planes: Planes, radius: int, sigma: Number, angle: Number) -> Planes:
    """Weigh the pixels on a line behind each one by half a Gaussian; `angle` is in degrees, as ImageMagick's is."""
    _, height, width = planes.shape
    steps = np.arange(2 * radius + 1)
    weights = np.exp(-(steps**2) / (2 * sigma**2))
    radians = np.deg2rad(angle)
    across = np.ceil(steps * np.cos(radians) - 0.5).astype(int)
    down = np.ceil(steps * np.sin(radians) - 0.5).astype(int)
    blurred = np.zeros_like(planes)
    for weight, right, below in zip(weights / weights.sum(), across, down, strict=True):
        rows = inside(np.arange(height) + below, height, "nearest")
        columns = inside(np.arange(width) + right, width, "nearest")
        blurred += weight * planes[:, rows[:, None], columns]
    return blurred


def zoom_blur(planes: Planes, draws: Draws, furthest: Number, step: Number) -> Planes:  # noqa: ARG001 - it is fixed
    """Average an image with its magnifications from 1 to before `furthest`."""
    factors = np.arange(1, furthest, step)
    return (planes + sum(magnify(planes, float(factor)) for factor in factors)) / (len(factors) + 1)
