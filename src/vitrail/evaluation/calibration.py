"""Calibration: of the answers with a confidence of 80%, 80% should be right.

Confidence is the softmax probability of the answer. Images are put into 15 bins of equal width, (0, 1/15] to
(14/15, 1]. With n images in all, n_b of them in bin b, acc_b the share of right answers there and conf_b the mean
confidence there:

    ECE = sum over b of n_b / n * |acc_b - conf_b|          MCE = max over b with n_b > 0 of |acc_b - conf_b|
"""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

BINS = 15
EDGES = np.linspace(0.0, 1.0, BINS + 1)


@dataclass(frozen=True, kw_only=True, eq=False)
class Reliability:
    """Confidence beside accuracy, bin by bin; NaN where a bin has no images."""

    images: Int[np.ndarray, "bin"]
    """Images of each bin."""
    confidence: Float[np.ndarray, "bin"]
    """Their mean confidence."""
    accuracy: Float[np.ndarray, "bin"]
    """The share of right answers among them."""

    @property
    def ece(self) -> float:
        """The expected calibration error."""
        total = int(self.images.sum())
        gaps = np.nan_to_num(np.abs(self.accuracy - self.confidence))
        return float(gaps @ self.images) / total if total else math.nan

    @property
    def mce(self) -> float:
        """The maximum calibration error."""
        gaps = np.abs(self.accuracy - self.confidence)[self.images > 0]
        return float(gaps.max()) if gaps.size else math.nan


def bin_of(confidence: Float[np.ndarray, "image"]) -> Int[np.ndarray, "image"]:
    """Return the bin of each image; a confidence on an edge belongs to the bin below it."""
    return np.searchsorted(EDGES[1:-1], confidence)


def reliability(confidence: Float[np.ndarray, "image"], right: Bool[np.ndarray, "image"]) -> Reliability:
    """Compare confidence with accuracy."""
    bins = bin_of(confidence)
    images = np.bincount(bins, minlength=BINS)
    sums = (np.bincount(bins, weights=values, minlength=BINS) for values in (confidence, right.astype(np.float64)))
    confident, hits = (np.divide(each, images, out=np.full(BINS, np.nan), where=images > 0) for each in sums)
    return Reliability(images=images, confidence=confident, accuracy=hits)
