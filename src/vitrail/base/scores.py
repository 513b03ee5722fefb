"""The scores of a confusion matrix: accuracy with its interval, and precision, recall and F1 of each class."""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Integer

Confusion = Integer[np.ndarray, "truth answer"]
ClassCounts = Integer[np.ndarray, "class"]
ClassShares = Float[np.ndarray, "class"]

NORMAL_975 = 1.959963984540054
"""The normal quantile that leaves 2.5% on either side."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Scores:
    """Support, recall, precision and F1 of each class; NaN where there is nothing to count."""

    support: ClassCounts
    """Images of each class."""
    hits: ClassCounts
    """Images of each class with the right answer."""
    recall: ClassShares
    """Right answers among the images of a class."""
    precision: ClassShares
    """Right answers among the answers of a class."""
    f1: ClassShares
    """The harmonic mean of both."""

    @property
    def total(self) -> int:
        """Count the images."""
        return int(self.support.sum())

    @property
    def correct(self) -> int:
        """Count the right answers."""
        return int(self.hits.sum())

    @property
    def accuracy(self) -> float:
        """Return the share of right answers."""
        return self.correct / self.total if self.total else math.nan

    @property
    def balanced_accuracy(self) -> float:
        """Return the mean recall of the classes that have images."""
        return _mean(self.recall)

    @property
    def macro_precision(self) -> float:
        """Return the mean precision of the classes that have images or answers; one never answered counts as 0."""
        return _mean(np.where(np.isnan(self.f1), np.nan, np.nan_to_num(self.precision)))

    @property
    def macro_f1(self) -> float:
        """Return the mean F1 of the classes that have images or answers."""
        return _mean(self.f1)


def scores(confusion: Confusion) -> Scores:
    """Score every class, without a second copy of a matrix that may be large."""
    return tally(
        hits=confusion.diagonal().astype(np.int64),
        support=confusion.sum(axis=1, dtype=np.int64),
        answers=confusion.sum(axis=0, dtype=np.int64),
    )


def tally(*, hits: ClassCounts, support: ClassCounts, answers: ClassCounts) -> Scores:
    """Score every class by its right answers, its images and its answers, without the matrix."""
    return Scores(
        support=support,
        hits=hits,
        recall=_share(hits, support),
        precision=_share(hits, answers),
        f1=_share(2 * hits, support + answers),
    )


def interval(correct: int, total: int) -> tuple[float, float]:
    """Return Wilson's 95% interval of the share `correct / total`.

    It stays within 0 and 1, and is wider than 0 even when every answer is right.
    """
    if total == 0:
        return 0.0, 1.0
    share, weight = correct / total, NORMAL_975**2 / total
    centre = (share + weight / 2) / (1 + weight)
    half = math.sqrt(share * (1 - share) * weight + weight**2 / 4) / (1 + weight)
    return max(0.0, centre - half), min(1.0, centre + half)


def most_confused(confusion: Confusion, most: int) -> list[tuple[int, int, int]]:
    """Return the pairs (truth, answer, images) that are confused most often, row by row to save memory."""
    pairs: list[tuple[int, int, int]] = []
    for truth, row in enumerate(confusion):
        wrong = np.flatnonzero(row)
        wrong = wrong[wrong != truth]
        if wrong.size > most:
            wrong = wrong[np.argsort(-row[wrong].astype(np.int64), kind="stable")[:most]]
        pairs.extend((truth, int(answer), int(row[answer])) for answer in wrong)
    return sorted(pairs, key=lambda pair: (-pair[2], pair[0], pair[1]))[:most]


def _share(part: ClassCounts, whole: ClassCounts) -> ClassShares:
    return np.divide(part, whole, out=np.full(part.shape, np.nan), where=whole > 0)


def _mean(shares: ClassShares) -> float:
    defined = shares[~np.isnan(shares)]
    return float(defined.mean()) if defined.size else math.nan
