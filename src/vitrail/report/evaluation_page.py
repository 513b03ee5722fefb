"""The page of an evaluation: key figures with intervals, confusions, classes, calibration, mistakes, data, model."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from vitrail.base.files import atomic_write
from vitrail.report import answers, facts
from vitrail.report.reliability import Bin, calibration
from vitrail.report.report import page, page_kind
from vitrail.report.section import Figure, Section, section
from vitrail.report.story import DataStory, EvaluationStory, Mistake

GENERATOR = "Vitrail evaluation"
EVALUATION = page_kind("the page of an evaluation", GENERATOR)


@dataclass(frozen=True, kw_only=True, eq=False)
class EvaluationPage:
    """The content of the page of one evaluation."""

    title: str
    """The model and the data."""
    figures: Sequence[Figure]
    """The key figures, in order."""
    evaluation: EvaluationStory | None
    """The answers as counts; None when no image has a class."""
    bins: Sequence[Bin]
    """Confidence beside accuracy; empty when no image has a class."""
    calibration: str
    """A sentence about the calibration."""
    mistakes: Sequence[Mistake]
    """Images with wrong answers."""
    data: DataStory
    """The data."""
    model: Mapping[str, str]
    """Facts about the model, in order."""
    notes: Sequence[str] = ()
    """Sentences that a reader should see first."""


def render_evaluation(content: EvaluationPage) -> str:
    """Return the page as HTML."""
    sections: list[Section] = []
    if content.evaluation is not None:
        sections += [answers.confusions(content.evaluation), answers.classes(content.evaluation)]
    if content.bins:
        sections += [calibration(content.bins, content.calibration), answers.mistakes(content.mistakes)]
    sections += [facts.data(content.data), section("Model", facts.facts_table(content.model))]
    return page(content.title, content.notes, sections, content.figures, generator=GENERATOR)


def write_evaluation(content: EvaluationPage, path: Path) -> None:
    """Write the page, whole or not at all."""
    page_bytes = render_evaluation(content).encode()
    with atomic_write(path) as file:
        file.write(page_bytes)
