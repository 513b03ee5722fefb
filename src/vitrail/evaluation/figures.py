"""The figures of an evaluation as text: names, order, digits."""

import math

FIGURES = {
    "accuracy": "accuracy",
    "top5": "top-5 accuracy",
    "real": "ReaL accuracy",
    "balanced_accuracy": "balanced accuracy",
    "macro_precision": "macro precision",
    "macro_f1": "macro F1",
    "ece": "calibration error (ECE)",
    "brier": "Brier score",
    "loss": "loss (NLL)",
}
"""The names of the figures, in the order in which they are listed."""
NUMBERS = ("brier", "loss")
"""Figures that are not shares."""


def written(name: str, value: float) -> str:
    """Write a figure; one that was never counted is a dash."""
    if name in NUMBERS:
        return f"{value:.4f}"
    return "\N{EN DASH}" if math.isnan(value) else f"{100 * value:.2f}%"
