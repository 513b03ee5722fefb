"""The report of a run: one self-contained page, made from the run's story.

    story -> key figures, curves, sections of evaluators, data, cost, settings -> report.html

The page loads nothing and runs nothing: all its content is inside, and its content policy forbids the rest. The same
story gives the same bytes.
"""

from collections.abc import Sequence
from pathlib import Path

from vitrail.base.files import atomic_write
from vitrail.base.outputs import Kind, marked
from vitrail.report import facts
from vitrail.report.curves import curves
from vitrail.report.markup import Html, join, tag, text
from vitrail.report.section import Figure, Section, sentence
from vitrail.report.story import RunStory
from vitrail.report.style import STYLE

POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
"""What a browser may load for the page: only what is inside it."""


def page_kind(name: str, generator: str) -> Kind:
    """Return the kind of a page that `document` marks with a generator."""
    return Kind(name=name, suffixes=(".html",), holds=marked(f'name="generator" content="{generator}"'.encode()))


def render(story: RunStory) -> str:
    """Return the page as HTML."""
    sections = [curves(story.metrics, story.split)]
    sections += [] if story.split else [sentence("Evaluation", "No images were held out.")]
    sections += [*story.sections, facts.data(story.data)]
    sections += [facts.cost(story.cost)] if story.cost else []
    return page(story.title, story.notes, [*sections, facts.settings(story.settings)])


def page(
    title: str,
    notes: Sequence[str],
    sections: Sequence[Section],
    figures: Sequence[Figure] = (),
    *,
    generator: str = "",
) -> str:
    """Return a page of sections as HTML; their figures stand at its top, after those of the page itself."""
    tiles = [*figures, *(figure for part in sections for figure in part.figures)]
    parts = [tag("header", tag("h1", text(title))), _notes(notes), _tiles(tiles)]
    parts += [part.html for part in sections]
    parts.append(tag("footer", text("Made by Vitrail.")))
    return document(title, tag("main", *parts), generator=generator)


def write_report(story: RunStory, path: Path) -> None:
    """Write the page, whole or not at all."""
    page_bytes = render(story).encode()
    with atomic_write(path) as file:
        file.write(page_bytes)


def _tiles(figures: Sequence[Figure]) -> Html:
    """Show figures, large, each with its note below."""
    tiles = (
        tag(
            "div",
            tag("dt", text(figure.label)),
            tag("dd", tag("b", text(figure.value)), *([tag("small", text(figure.note))] if figure.note else [])),
            class_="tile",
        )
        for figure in figures
    )
    return tag("dl", *tiles, class_="tiles") if figures else Html("")


def _notes(sentences: Sequence[str]) -> Html:
    """Show the notes that a reader should see first."""
    if not sentences:
        return Html("")
    return tag("section", tag("ul", *(tag("li", text(sentence)) for sentence in sentences)), class_="notes")


def document(title: str, body: Html, *, generator: str = "") -> str:
    """Return a self-contained page; `generator` is the mark by which a kind of page is recognised."""
    mark = [tag("meta", name="generator", content=generator)] if generator else []
    head = join(
        (
            tag("meta", charset="utf-8"),
            *mark,
            tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
            tag("meta", http_equiv="Content-Security-Policy", content=POLICY),
            tag("title", text(title)),
            tag("style", Html(STYLE)),
        ),
        "\n",
    )
    return f"<!DOCTYPE html>\n{tag('html', tag('head', head), tag('body', body), lang='en')}\n"
