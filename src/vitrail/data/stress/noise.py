"""Noise (Hendrycks and Dietterich, 2019): of a sensor, of few photons, of broken pixels."""

import numpy as np

from vitrail.data.stress.draws import Draws
from vitrail.data.stress.planes import Number, Planes


def gaussian_noise(planes: Planes, draws: Draws, deviation: Number) -> Planes:
    """Add a normal draw to every value; the deviation is a share of the whole range."""
    return planes + 255 * deviation * draws.normal("noise", *planes.shape)


def shot_noise(planes: Planes, draws: Draws, photons: Number) -> Planes:
    """Count Poisson photons: `photons` on average where a value is 255."""
    return 255 / photons * draws.poisson("noise", np.rint(planes).astype(np.uint8), photons)


def impulse_noise(planes: Planes, draws: Draws, share: Number) -> Planes:
    """Turn a share of the values black or white, half of them each."""
    chances = draws.uniform("noise", *planes.shape)
    return np.where(chances < share / 2, 0.0, np.where(chances < share, 255.0, planes))
