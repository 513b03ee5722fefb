"""The page of a stress test: curves of all models, what was published beside it, and the images that break first."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from vitrail.base.table import Table
from vitrail.report.charts import Chart
from vitrail.report.explanation_page import Panel, panels
from vitrail.report.markup import Html, folded, join, name, table, tag, text
from vitrail.report.report import page, page_kind
from vitrail.report.section import Figure, Section, section

GENERATOR = "Vitrail stress"
STRESS = page_kind("a page of a stress test", GENERATOR)


@dataclass(frozen=True, kw_only=True, eq=False)
class StressPage:
    """The content of the page."""

    title: str
    figures: Sequence[Figure]
    charts: Mapping[str, Sequence[Chart]]
    """The charts of each group, by its heading."""
    folded: Mapping[str, Sequence[Chart]]
    """Charts that open on a click, by the heading that they belong to."""
    explanations: Mapping[str, str]
    """What the charts of a group show, by its heading."""
    tables: Sequence[Table]
    worst: Sequence[Panel]
    notes: Sequence[str] = ()


def render_stress(story: StressPage) -> str:
    """Return the page as HTML."""
    sections = [_table(content) for content in story.tables]
    sections += [_charts(story, heading, number) for number, heading in enumerate(story.charts)]
    if story.worst:
        note = tag("p", text("For each stress, the image that breaks with the least change, clean and stressed."))
        sections.append(section("The first images to break", note, panels(story.worst)))
    return page(story.title, story.notes, sections, story.figures, generator=GENERATOR)


def _table(content: Table) -> Section:
    rows = [tuple(name(cell) for cell in row) for row in content.rows]
    notes = (tag("p", text(note), class_="muted") for note in content.notes)
    kind = "noted" if content.columns[-1] == "note" else ""
    return section(content.title, table(content.columns, rows, kind=kind), *notes)


def _charts(story: StressPage, heading: str, number: int) -> Section:
    parts = [tag("p", text(story.explanations[heading]), class_="muted"), _drawn(story.charts[heading], f"c{number}")]
    if heading in story.folded:
        parts.append(folded("Each by itself", _drawn(story.folded[heading], f"f{number}")))
    return section(heading, join(parts))


def _drawn(charts: Sequence[Chart], prefix: str) -> Html:
    drawn = [chart.html(f"{prefix}-{place}") for place, chart in enumerate(charts)]
    return tag("div", *drawn, class_="two")
