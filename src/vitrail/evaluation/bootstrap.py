"""How much a figure varies over samples of images: the percentile bootstrap.

A resample draws as many images as there are, with replacement. Figures are functions of how often each image was drawn,
so all of them are measured on the same resamples. The interval goes from the 2.5th to the 97.5th percentile. Time grows
with resamples x images.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int

from vitrail.base.errors import ConfigError
from vitrail.base.seeds import key

DrawCounts = Int[np.ndarray, "image"]
"""How often each image was drawn."""
Figures = Callable[[DrawCounts], Mapping[str, float]]
"""Maps how often each image was drawn to figures by name."""

LEVEL = 0.95
FEWEST, MOST = 100, 1_000_000
"""Fewer resamples give no percentile: the 2.5th would be one of the lowest two draws. More take days, for nothing."""


@dataclass(frozen=True, kw_only=True)
class Interval:
    """A figure with its 95% interval over samples of the same size."""

    value: float
    low: float
    high: float


def bootstrap(figures: Figures, images: int, *, resamples: int = 1000, seed: int = 0) -> dict[str, Interval]:
    """Measure the figures on the images themselves, and on resamples of them."""
    if resamples < FEWEST:
        raise ConfigError(f"`resamples` is {resamples}, but an interval of {LEVEL:.0%} needs at least {FEWEST}.")
    values = figures(np.ones(images, dtype=np.int64))
    generator = np.random.default_rng(key(seed, "bootstrap"))
    table = np.empty((resamples, len(values)))
    for row in table:
        resampled = figures(np.bincount(generator.integers(0, images, images), minlength=images))
        row[:] = [resampled[name] for name in values]
    low, high = np.quantile(table, ((1 - LEVEL) / 2, (1 + LEVEL) / 2), axis=0)
    return {
        name: Interval(value=value, low=float(low[at]), high=float(high[at]))
        for at, (name, value) in enumerate(values.items())
    }
