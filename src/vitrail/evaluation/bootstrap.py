"""How far a figure might be off, had other images been drawn: the percentile bootstrap.

A resample draws as many images as there are, with replacement. It is told by how often each image was drawn; figures
are functions of these counts, so that all of them are measured on the same resamples. The interval goes from the 2.5th
to the 97.5th percentile of what they give. Time grows with resamples x images.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int

from vitrail.base.errors import ConfigError
from vitrail.base.seeds import key

Drawn = Int[np.ndarray, "image"]
"""How often each image was drawn."""
Figures = Callable[[Drawn], Mapping[str, float]]
"""From how often each image was drawn to figures by name."""

LEVEL = 0.95
FEWEST = 100
"""Resamples below which the 2.5th percentile is no more than one of the lowest draws."""


@dataclass(frozen=True, kw_only=True)
class Interval:
    """A figure, and the range in which it would lie on 95% of other samples of the same size."""

    value: float
    low: float
    high: float


def bootstrap(figures: Figures, images: int, *, resamples: int = 1000, seed: int = 0) -> dict[str, Interval]:
    """Measure the figures on the images themselves, and on resamples of them."""
    if resamples < FEWEST:
        raise ConfigError(f"{resamples} resamples are too few for an interval of {LEVEL:.0%}; take {FEWEST} or more.")
    values = figures(np.ones(images, dtype=np.int64))
    generator = np.random.default_rng(key(seed, "bootstrap"))
    found = np.empty((resamples, len(values)))
    for row in found:
        drawn = figures(np.bincount(generator.integers(0, images, images), minlength=images))
        row[:] = [drawn[name] for name in values]
    low, high = np.quantile(found, ((1 - LEVEL) / 2, (1 + LEVEL) / 2), axis=0)
    return {
        name: Interval(value=value, low=float(low[at]), high=float(high[at]))
        for at, (name, value) in enumerate(values.items())
    }
