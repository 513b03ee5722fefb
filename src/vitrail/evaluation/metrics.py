"""The figures of an evaluation: accuracy and related figures with intervals, classes, calibration."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool

from vitrail.base.errors import InputError
from vitrail.base.scores import Scores, interval, tally
from vitrail.evaluation.bootstrap import DrawCounts, Figures, Interval, bootstrap
from vitrail.evaluation.calibration import BINS, EDGES, Reliability, bin_of, reliability
from vitrail.evaluation.classify import Answers

TOP = 5
"""Size of the list that counts for top-5 accuracy; with no more classes than this it is always 1."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Metrics:
    """How well a model answers, on the images that have a class."""

    images: int
    """Images that were counted."""
    figures: Mapping[str, Interval]
    """`accuracy`, `top5` (with more than five classes), `balanced_accuracy`, `macro_precision`, `macro_f1`, `ece`,
    `brier` and `loss`, each with its interval."""
    scores: Scores
    """Precision, recall and F1 of each class."""
    reliability: Reliability
    """Confidence beside accuracy."""
    cells: Sequence[tuple[int, int, int]]
    """The confusion matrix where it is not 0: truth, answer, images."""

    def confused(self, most: int) -> list[tuple[int, int, int]]:
        """Return the pairs (truth, answer, images) that are confused most often."""
        wrong = [cell for cell in self.cells if cell[0] != cell[1]]
        return sorted(wrong, key=lambda cell: (-cell[2], cell[0], cell[1]))[:most]


def measure(answers: Answers, num_classes: int, *, resamples: int = 1000, seed: int = 0) -> Metrics:
    """Compute every figure with its interval."""
    counted = answers.counted
    images = int(counted.sum())
    if not images:
        raise InputError("no image with a class could be read, so there is nothing to score.")
    figures = bootstrap(_figures(answers, num_classes), images, resamples=resamples, seed=seed)
    right = (answers.predicted == answers.targets)[counted]
    figures["accuracy"] = widened(figures["accuracy"], images)
    if "top5" in figures:
        figures["top5"] = widened(figures["top5"], images)
    return Metrics(
        images=images,
        figures=figures,
        scores=answers.scores(num_classes),
        reliability=reliability(answers.confidence[counted], right),
        cells=answers.cells(),
    )


def share(right: Bool[np.ndarray, "image"], *, resamples: int = 1000, seed: int = 0) -> Interval:
    """Return the share of right answers with its interval."""

    def figures(draws: DrawCounts) -> dict[str, float]:
        return {"share": float(draws[right].sum() / draws.sum())}

    return widened(bootstrap(figures, len(right), resamples=resamples, seed=seed)["share"], len(right))


def widened(figure: Interval, images: int) -> Interval:
    """Give a share of 0 or 1 Wilson's interval: all its resamples are the same, so the bootstrap has no width."""
    if 0 < figure.value < 1:
        return figure
    low, high = interval(round(figure.value * images), images)
    return Interval(value=figure.value, low=low, high=high)


def summary(metrics: Metrics, labels: Sequence[str]) -> dict[str, Any]:
    """Return everything as plain values for JSON; what was never counted is null."""
    scores, reliability = metrics.scores, metrics.reliability
    return {
        "images": metrics.images,
        **{name: asdict(figure) for name, figure in metrics.figures.items()},
        "classes": [
            {
                "name": label,
                "images": int(scores.support[at]),
                "precision": _plain(scores.precision[at]),
                "recall": _plain(scores.recall[at]),
                "f1": _plain(scores.f1[at]),
            }
            for at, label in enumerate(labels)
        ],
        "confusion": [list(cell) for cell in metrics.cells],
        "calibration": {
            "mce": reliability.mce,
            "bins": [
                {
                    "above": float(EDGES[at]),
                    "to": float(EDGES[at + 1]),
                    "images": int(reliability.images[at]),
                    "confidence": _plain(reliability.confidence[at]),
                    "accuracy": _plain(reliability.accuracy[at]),
                }
                for at in range(BINS)
            ],
        },
    }


def _figures(answers: Answers, num_classes: int) -> Figures:
    """Write the figures as a function of how often each image was drawn."""
    counted = answers.counted
    truth, predicted = answers.targets[counted], answers.predicted[counted]
    right = truth == predicted
    hits = truth[right]
    bins, gaps = bin_of(answers.confidence[counted]), right - answers.confidence[counted]
    means = {"brier": answers.squares[counted], "loss": answers.losses[counted]}
    if num_classes > TOP:
        means["top5"] = (answers.above[counted] < TOP).astype(np.float64)

    def count(classes: np.ndarray, weights: np.ndarray) -> np.ndarray:
        return np.bincount(classes, weights=weights, minlength=num_classes).astype(np.int64)

    def figures(draws: DrawCounts) -> dict[str, float]:
        scores = tally(hits=count(hits, draws[right]), support=count(truth, draws), answers=count(predicted, draws))
        total = scores.total
        return {
            "accuracy": scores.accuracy,
            "balanced_accuracy": scores.balanced_accuracy,
            "macro_precision": scores.macro_precision,
            "macro_f1": scores.macro_f1,
            "ece": float(np.abs(np.bincount(bins, weights=draws * gaps)).sum() / total),
            **{name: float(draws @ values / total) for name, values in means.items()},
        }

    return figures


def _plain(value: Any) -> float | None:
    return None if math.isnan(value) else float(value)
