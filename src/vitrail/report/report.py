"""The report of a run: one page that needs nothing else, made of the run's story.

    story -> key figures, curves, confusions, classes, mistakes, data, cost, settings -> report.html

The page loads nothing and runs nothing: what it shows is in it, and its content policy forbids the rest. The same story
gives the same bytes.
"""

from collections.abc import Sequence
from pathlib import Path

from vitrail.base.files import atomic_write
from vitrail.report import answers, facts
from vitrail.report.curves import curves
from vitrail.report.markup import Html, join, section, tag, text
from vitrail.report.story import DataStory, EvaluationStory, Mistake, RunStory
from vitrail.report.style import STYLE

__all__ = ["DataStory", "EvaluationStory", "Mistake", "RunStory", "render", "write_report"]

POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
"""What a browser may fetch for the page: nothing but what it holds."""


def render(story: RunStory) -> str:
    """Return the page as HTML."""
    evaluation = story.evaluation
    parts = [tag("header", tag("h1", text(story.title))), notes(story.notes), facts.key_figures(story)]
    parts.append(curves(story.metrics, None if evaluation is None else evaluation.split))
    if evaluation is None or not evaluation.scores.total:
        reason = "No images were held out." if evaluation is None else "None of the held-out images could be read."
        parts.append(section("Evaluation", tag("p", text(reason), class_="muted")))
    else:
        parts += [answers.confusions(evaluation), answers.classes(evaluation), answers.mistakes(story.mistakes)]
    parts.extend(section(heading, Html(safe)) for heading, safe in story.extras)
    parts.extend((facts.data(story.data), facts.cost(story.cost), facts.settings(story.settings)))
    parts.append(tag("footer", text("Made by Vitrail.")))
    return document(story.title, tag("main", *parts))


def write_report(story: RunStory, path: Path) -> None:
    """Write the page, whole or not at all."""
    page = render(story).encode()
    with atomic_write(path) as file:
        file.write(page)


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
