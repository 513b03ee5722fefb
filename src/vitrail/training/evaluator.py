"""What is measured while a model learns: an evaluator has a name, a cadence, and figures that are journaled."""

from abc import ABC, abstractmethod
from typing import Generic, TypeVar

from vitrail.model.contract import Model

Outcome = TypeVar("Outcome")


class Evaluator(ABC, Generic[Outcome]):
    """Something that is measured again and again, and after the last step.

    A run may have several, of different names. What one found is an outcome: the loop keeps the last of each.
    """

    name: str
    """How the names of its figures begin in `metrics.jsonl`: `val` makes val_accuracy."""
    every: int
    """Steps between two evaluations."""

    @abstractmethod
    def evaluate(self, model: Model) -> Outcome:
        """Measure a model, which is in evaluation mode; every rank calls it.

        One that can be interrupted raises `StoppedError`, and is called again when the run is resumed.
        """

    @abstractmethod
    def figures(self, outcome: Outcome) -> dict[str, float]:
        """Return the numbers that are journaled."""

    def journaled(self, outcome: Outcome) -> dict[str, float]:
        """Return the figures with their names in `metrics.jsonl`."""
        return {f"{self.name}_{name}": value for name, value in self.figures(outcome).items()}
