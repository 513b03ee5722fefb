"""Tokens that stand out by their length: outliers (Darcet et al., 2023), by a threshold from the histogram."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

Lengths = Float[np.ndarray, "token"]

BINS = 64
FACTOR = 2.0
"""How many times longer than the others outliers are, at least, in the mean of logarithms."""
VALLEY = 0.5
"""The most that the emptiest bin between the two peaks may have, as a share of the lower peak."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Outliers:
    """A histogram of lengths on a logarithmic scale, and where it falls apart in two."""

    edges: Float[np.ndarray, "edge"]
    counts: Int[np.ndarray, "bin"]
    threshold: float | None
    """The length above which tokens are outliers; None where lengths are of one kind."""
    share: float
    """The share of tokens above it."""


def find_outliers(lengths: Lengths, bins: int = BINS) -> Outliers:
    """Split lengths in two where that leaves least variance of their logarithms (Otsu's threshold).

    The split counts only if the longer ones are fewer, on average at least twice as long, and behind a valley of the
    histogram; otherwise there are no outliers.
    """
    logs = np.log(np.maximum(lengths, np.finfo(float).tiny))
    low, high = float(logs.min()), float(logs.max())
    if not high - low > 1e-9:
        low, high = low - 0.5, high + 0.5
    counts, edges = np.histogram(logs, bins=bins, range=(low, high))
    cut = otsu(counts, (edges[1:] + edges[:-1]) / 2)
    above = logs >= edges[cut]
    outlying = _is_apart(logs, above) and _has_valley(counts, cut)
    return Outliers(
        edges=np.exp(edges),
        counts=counts,
        threshold=float(np.exp(edges[cut])) if outlying else None,
        share=float(above.mean()) if outlying else 0.0,
    )


def otsu(counts: Int[np.ndarray, "bin"], centres: Float[np.ndarray, "bin"]) -> int:
    """Return the first bin of the upper class, where the variance between the two classes is largest."""
    below = np.cumsum(counts)[:-1].astype(float)
    above = counts.sum() - below
    sums = np.cumsum(counts * centres)
    with np.errstate(divide="ignore", invalid="ignore"):
        between = below * above * (sums[:-1] / below - (sums[-1] - sums[:-1]) / above) ** 2
    between = np.nan_to_num(between)
    best = np.flatnonzero(between >= between.max() * (1 - 1e-12))
    return int(best[len(best) // 2]) + 1  # in the middle of an empty stretch


def _is_apart(logs: Lengths, above: np.ndarray) -> bool:
    """Return whether the upper class is the smaller one, and far enough from the lower."""
    if not 0 < above.sum() < len(logs) / 2:
        return False
    return bool(logs[above].mean() - logs[~above].mean() >= np.log(FACTOR))


def _has_valley(counts: Int[np.ndarray, "bin"], cut: int) -> bool:
    """Return whether the histogram falls between its two peaks; it is smoothed first, over three bins."""
    smooth = np.convolve(counts, np.ones(3) / 3, mode="same")
    left, right = int(smooth[:cut].argmax()), cut + int(smooth[cut:].argmax())
    lowest = smooth[left : right + 1].min()
    return bool(lowest <= VALLEY * min(smooth[left], smooth[right]))
