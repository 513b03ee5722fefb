"""The figures of an evaluation as people read them: their names, their order, their digits."""

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
"""Figures in the order in which people look for them, and what they are called."""
NUMBERS = ("brier", "loss")
"""Figures that are not shares."""


def written(name: str, value: float) -> str:
    """Write a figure as a person reads it; what was never counted is a dash."""
    if name in NUMBERS:
        return f"{value:.4f}"
    return "\N{EN DASH}" if math.isnan(value) else f"{100 * value:.2f}%"
