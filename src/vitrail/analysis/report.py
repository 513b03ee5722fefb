"""The report of a run: one page that needs nothing else, made of the run's story.

    story -> key figures, curves, confusions, classes, mistakes, data, cost, settings -> report.html

The page loads nothing and runs nothing: what it shows is in it, and its content policy forbids the rest. The same story
gives the same bytes.
"""

from collections.abc import Sequence
from pathlib import Path

from vitrail.analysis import answers, facts
from vitrail.analysis.curves import curves
from vitrail.analysis.markup import Html, join, section, tag, text
from vitrail.analysis.story import DataStory, EvaluationStory, Mistake, RunStory
from vitrail.analysis.style import STYLE
from vitrail.base.files import atomic_write
from vitrail.base.scores import scores

__all__ = ["DataStory", "EvaluationStory", "Mistake", "RunStory", "render", "write_report"]

POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
"""What a browser may fetch for the page: nothing but what it holds."""


def render(story: RunStory) -> str:
    """Return the page as HTML."""
    evaluation = story.evaluation
    counted = scores(evaluation.confusion) if evaluation is not None else None
    parts = [_header(story), notes(story.notes), facts.key_figures(story, counted), curves(story.metrics)]
    if evaluation is not None and counted is not None and counted.total:
        parts.append(answers.confusions(evaluation))
        parts.append(answers.classes(evaluation, counted))
    else:
        waiting = "There is no final evaluation yet." if evaluation is None else "The evaluated split has no images."
        parts.append(section("Evaluation", tag("p", text(waiting), class_="muted")))
    if evaluation is not None or story.mistakes:
        parts.append(answers.mistakes(story.mistakes))
    parts.extend(section(heading, Html(safe)) for heading, safe in story.extras)
    parts.extend((facts.data(story.data), facts.cost(story.cost), facts.settings(story.settings)))
    parts.append(tag("footer", text("Made by Vitrail.")))
    return document(story.title, tag("main", *parts))


def write_report(story: RunStory, path: Path) -> None:
    """Write the page, whole or not at all."""
    page = render(story).encode()
    with atomic_write(path) as file:
        file.write(page)


def _header(story: RunStory) -> Html:
    badge = tag("span", text("finished"), class_="badge")
    if not story.finished:
        badge = tag("span", text("not finished"), class_="badge open")
    return tag("header", tag("h1", text(story.title)), badge)


def notes(sentences: Sequence[str]) -> Html:
    """Show what a reader should see first."""
    if not sentences:
        return Html("")
    return tag("section", tag("ul", *(tag("li", text(sentence)) for sentence in sentences)), class_="notes")


def document(title: str, body: Html) -> str:
    """Return a page that needs nothing else."""
    head = join(
        (
            tag("meta", charset="utf-8"),
            tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
            tag("meta", http_equiv="Content-Security-Policy", content=POLICY),
            tag("title", text(title)),
            tag("style", Html(STYLE)),
        ),
        "\n",
    )
    return f"<!DOCTYPE html>\n{tag('html', tag('head', head), tag('body', body), lang='en')}\n"
