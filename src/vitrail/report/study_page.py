"""The page of a study: its question, the figure beside the paper's, and the tables."""

from collections.abc import Sequence
from dataclasses import dataclass

from vitrail.base.table import Table
from vitrail.report.charts import Chart
from vitrail.report.markup import name, table, tag, text
from vitrail.report.report import page, page_kind
from vitrail.report.section import Figure, Section, section

GENERATOR = "Vitrail study"
STUDY = page_kind("a page of a study", GENERATOR)


@dataclass(frozen=True, kw_only=True, eq=False)
class StudyPage:
    """The content of the page."""

    title: str
    question: str
    paper: str
    figures: Sequence[Figure]
    charts: Sequence[Chart]
    tables: Sequence[Table]
    notes: Sequence[str] = ()


def render_study(story: StudyPage) -> str:
    """Return the page as HTML."""
    drawn = [chart.html(f"c{number}") for number, chart in enumerate(story.charts)]
    room = [tag("div")] if len(drawn) == 1 else []
    paper = [tag("p", text(f"The paper: {story.paper}"), class_="muted")] if story.paper else []
    figure = section(story.question, *paper, tag("div", *drawn, *room, class_="two"))
    sections = [figure, *(_table(content) for content in story.tables)]
    return page(story.title, story.notes, sections, story.figures, generator=GENERATOR)


def _table(content: Table) -> Section:
    rows = [tuple(name(cell) for cell in row) for row in content.rows]
    notes = (tag("p", text(note), class_="muted") for note in content.notes)
    return section(content.title, table(content.columns, rows), *notes)
