"""An evaluation for people: the figures, the classes, the pairs that are mistaken most."""

import math

import numpy as np

from vitrail.cli.report import print_table
from vitrail.cli.say import show
from vitrail.evaluation.evaluation import Evaluation
from vitrail.evaluation.metrics import Metrics

MOST_CLASSES = 20
MOST_PAIRS = 10


def show_evaluation(evaluation: Evaluation) -> None:
    """Print the tables, the most important first."""
    metrics, labels = evaluation.metrics, evaluation.labels
    print_table(evaluation.title, ("", "value", "95% interval"), evaluation.rows(), notes=[evaluation.counted])
    if metrics is not None:
        show()
        _show_classes(metrics, labels)
        _show_pairs(metrics, labels)


def _show_classes(metrics: Metrics, labels: tuple[str, ...]) -> None:
    """List the classes that have images or answers, the worst first."""
    scores = metrics.scores
    order = np.argsort(np.nan_to_num(scores.f1, nan=2.0), kind="stable")
    scored = [int(at) for at in order if not math.isnan(scores.f1[at])]
    rows = [
        (
            labels[at],
            f"{scores.support[at]:,}",
            *(_percent(float(share[at])) for share in (scores.recall, scores.precision, scores.f1)),
        )
        for at in scored[:MOST_CLASSES]
    ]
    more = len(scored) > MOST_CLASSES
    notes = [f"The worst {MOST_CLASSES} of {len(scored):,} classes; --json lists all."] if more else []
    print_table("Classes, the worst first", ("class", "images", "recall", "precision", "F1"), rows, notes=notes)


def _show_pairs(metrics: Metrics, labels: tuple[str, ...]) -> None:
    pairs = metrics.confused(MOST_PAIRS)
    if not pairs:
        return
    show()
    support = metrics.scores.support
    rows = [
        (labels[truth], labels[answer], f"{images:,}", _percent(images / int(support[truth])))
        for truth, answer, images in pairs
    ]
    print_table("Most confused", ("truth", "answer", "images", "share of the class"), rows)


def _percent(share: float) -> str:
    return "-" if math.isnan(share) else f"{share:.1%}"
