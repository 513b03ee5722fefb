"""Measurements while a model learns: an evaluator has a name, a cadence, and figures for the journal."""

from abc import ABC, abstractmethod
from typing import Generic, TypeVar

from vitrail.model.contract import Model
from vitrail.training.learner import Learner

Outcome = TypeVar("Outcome")


class Evaluator(ABC, Generic[Outcome]):
    """Something that is measured again and again, and after the last step.

    A run may have several, of different names. What it returns is an outcome: the loop keeps the last of each.
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

    def evaluate_learner(self, learner: Learner, step: int) -> Outcome:  # noqa: ARG002 - for those that keep pictures
        """Measure what a learner would save after `step` steps; for what needs more of it than its model."""
        return self.evaluate(learner.saved)

    @abstractmethod
    def figures(self, outcome: Outcome) -> dict[str, float]:
        """Return the numbers that are journaled."""

    def journaled(self, outcome: Outcome) -> dict[str, float]:
        """Return the figures with their names in `metrics.jsonl`."""
        return {f"{self.name}_{name}": value for name, value in self.figures(outcome).items()}
