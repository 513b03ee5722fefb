"""The page of an evaluation: key figures with intervals, confusions, classes, calibration, mistakes, data, model."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from vitrail.base.files import atomic_write
from vitrail.report import answers, facts
from vitrail.report.markup import Html, section, tag, text
from vitrail.report.reliability import Bin, calibration
from vitrail.report.report import document, notes
from vitrail.report.story import DataStory, EvaluationStory, Mistake


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One number at the top of the page."""

    label: str
    """What it is."""
    value: str
    """The number as a person reads it."""
    note: str = ""
    """Its interval, or what it was measured on."""


@dataclass(frozen=True, kw_only=True, eq=False)
class EvaluationPage:
    """Everything that the page of one evaluation shows."""

    title: str
    """What was evaluated on what."""
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


def render_evaluation(page: EvaluationPage) -> str:
    """Return the page as HTML."""
    tiles = (facts.tile(figure.label, figure.value, figure.note) for figure in page.figures)
    parts = [tag("header", tag("h1", text(page.title))), notes(page.notes), tag("dl", *tiles, class_="tiles")]
    story = page.evaluation
    if story is not None:
        parts += [answers.confusions(story), answers.classes(story)]
    if page.bins:
        parts += [calibration(page.bins, page.calibration), answers.mistakes(page.mistakes)]
    parts += [facts.data(page.data), section("Model", facts.facts_table(page.model)), _footer()]
    return document(page.title, tag("main", *parts))


def write_evaluation(page: EvaluationPage, path: Path) -> None:
    """Write the page, whole or not at all."""
    written = render_evaluation(page).encode()
    with atomic_write(path) as file:
        file.write(written)


def _footer() -> Html:
    return tag("footer", text("Made by Vitrail."))
