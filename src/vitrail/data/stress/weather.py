"""Weather (Hendrycks and Dietterich, 2019): snow, frost, fog, and the light of a bright day."""

import numpy as np

from vitrail.data.stress.blur import smear
from vitrail.data.stress.draws import Draws
from vitrail.data.stress.planes import Number, Plane, Planes, grey_of, magnify, smooth

FROST_COLOUR = (0.87, 0.95, 1.0)
"""Red, green and blue of frost where it is whitest."""


def snow(
    planes: Planes,
    draws: Draws,
    mean: Number,
    deviation: Number,
    size: Number,
    least: Number,
    radius: int,
    sigma: Number,
    clear: Number,
) -> Planes:
    """Let flakes fall: normal noise, magnified, kept above `least`, smeared downwards; and whiten the scene."""
    _, height, width = planes.shape
    flakes = magnify(mean + deviation * draws.normal("flakes", 1, height, width), size)
    flakes = np.floor(255 * np.clip(np.where(flakes < least, 0.0, flakes), 0, 1))
    flakes = smear(flakes, radius, sigma, -135 + 90 * float(draws.uniform("angle", 1)[0]))
    pale = np.maximum(planes, 1.5 * grey_of(planes) + 127.5)
    return clear * planes + (1 - clear) * pale + flakes + flakes[:, ::-1, ::-1]


def frost(planes: Planes, draws: Draws, scene: Number, ice: Number) -> Planes:
    """Lay frost over the scene, as `scene` parts of one and `ice` of the other.

    The published images mix in photos of frozen windows; ours are drawn (see `frozen`), so figures differ somewhat.
    """
    window = 255 * frozen(draws, planes.shape[1], planes.shape[2])
    colours = np.array(FROST_COLOUR)[:, None, None] if planes.shape[0] == 3 else 1.0
    return scene * planes + ice * colours * window


def frozen(draws: Draws, height: int, width: int) -> Plane:
    """Draw a frozen window: needles of ice in several directions over clouds of rime, with a mean of about 0.6."""
    clouds = fractal(draws, max(height, width), 2.0)[:height, :width]
    needles = np.zeros((1, height, width))
    for number, turn in enumerate(draws.uniform("needles", 4)):
        specks = (draws.uniform(f"specks {number}", 1, height, width) > 0.985).astype(np.float64)
        length = max(max(height, width) // 12, 2)
        needles += smear(specks, length, length / 1.5, 360 * float(turn))
    needles = smooth(needles, 0.6)[0]
    return np.clip(0.3 + 0.45 * clouds + needles / (needles.max() + 1e-9) * 0.6, 0, 1)


def fog(planes: Planes, draws: Draws, thickness: Number, decay: Number) -> Planes:
    """Mix in a fractal of `thickness` times the range; the brightest value stays the brightest."""
    _, height, width = planes.shape
    brightest = planes.max() / 255
    veil = 255 * thickness * fractal(draws, max(height, width), decay)[:height, :width]
    return (planes + veil) * brightest / (brightest + thickness) if brightest else planes + veil / (1 + thickness)


def brightness(planes: Planes, draws: Draws, rise: Number) -> Planes:  # noqa: ARG001 - it is fixed
    """Raise the value of hue, saturation and value, by a share of the range; black becomes grey."""
    value = planes.max(axis=0)
    brighter = np.clip(value + 255 * rise, 0, 255)
    return np.where(value > 0, planes * (brighter / np.where(value > 0, value, 1)), brighter)


def fractal(draws: Draws, size: int, decay: Number) -> Plane:
    """Return clouds from 0 to 1 in a square of at least `size` pixels: diamonds and squares, on a torus.

    Every step halves the distance between points, puts each new one at the mean of its four neighbours, and moves it
    at random; the moves shrink by `decay` twice (as a factor and as a range), as in the published program.
    """
    side = 1 << max(size - 1, 1).bit_length()
    plane = np.zeros((side, side))
    step, move = side, 100.0
    while step >= 2:
        half, name = step // 2, f"fractal {step}"
        count = side // step
        moves = move * move * (2 * draws.uniform(name, 3, count, count) - 1)
        corners = plane[::step, ::step]
        across = corners + np.roll(corners, -1, axis=0)
        plane[half::step, half::step] = (across + np.roll(across, -1, axis=1)) / 4 + moves[0]
        centres = plane[half::step, half::step]
        beside = centres + np.roll(centres, 1, axis=0) + corners + np.roll(corners, -1, axis=1)
        plane[::step, half::step] = beside / 4 + moves[1]
        below = centres + np.roll(centres, 1, axis=1) + corners + np.roll(corners, -1, axis=0)
        plane[half::step, ::step] = below / 4 + moves[2]
        step, move = half, move / decay
    plane -= plane.min()
    return plane / plane.max()
