"""How few-shot classifiers are fitted unless the caller decides otherwise; nothing is imported for it."""

from typing import Literal

MethodName = Literal["ridge", "neighbours", "probe"]
L2 = 2.0**10
"""Strength of the regularisation of ridge."""
NEIGHBOURS = 20
"""Training images that vote."""
C = 1.0
"""The inverse strength of the regularisation of the probe, as in scikit-learn."""
