"""An evaluator of a run: what is measured while the model learns, and what the report shows of it."""

from dataclasses import dataclass

from vitrail.report.section import Section
from vitrail.training.evaluator import Evaluator, Outcome


@dataclass(frozen=True, kw_only=True)
class Scope:
    """What a model was measured on."""

    split: str | None
    images: int


class RunEvaluator(Evaluator[Outcome]):
    """An evaluator with sections for the report."""

    def sections(self, outcome: Outcome) -> list[Section]:  # noqa: ARG002 - most show something
        """Return what the report shows."""
        return []

    def scope(self, outcome: Outcome) -> Scope | None:  # noqa: ARG002 - for the one whose figures are the result's
        """Return what was measured on, if it is what the result of the run is about."""
        return None
