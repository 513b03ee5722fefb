"""An evaluator of a run: figures while the model learns, and their sections of the report."""

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
        """Return the sections of the report."""
        return []

    def scope(self, outcome: Outcome) -> Scope | None:  # noqa: ARG002 - for the one whose figures are the result's
        """Return the images that were evaluated on, if the result of the run is about them."""
        return None
