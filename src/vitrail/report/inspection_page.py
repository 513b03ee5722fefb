"""The page of an inspection: a panel for each question about what models have inside."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from vitrail.report.drawings import Drawing
from vitrail.report.markup import Html, table, tag, text
from vitrail.report.report import page, page_kind
from vitrail.report.section import Figure, Section, section

GENERATOR = "Vitrail inspection"
INSPECTION = page_kind("a page of an inspection", GENERATOR)


@dataclass(frozen=True, kw_only=True, eq=False)
class Panel:
    """One question, and what answers it."""

    key: str
    """The name of its files."""
    title: str
    about: str
    """How to read it, in a sentence or two."""
    drawings: Sequence[Drawing] = ()
    columns: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    """A table, where there is one."""
    sentences: Sequence[str] = field(default=())
    """What is not shown, and why."""

    def html(self) -> Section:
        """Return the panel as a section of the page."""
        parts: list[Html] = [tag("p", text(self.about), class_="muted")]
        if self.drawings:
            drawn = (drawing.html(f"{self.key}-{number}") for number, drawing in enumerate(self.drawings))
            parts.append(tag("div", *drawn, class_="two"))
        if self.rows:
            parts.append(table(self.columns, [[text(cell) for cell in row] for row in self.rows]))
        parts += [tag("p", text(sentence), class_="muted") for sentence in self.sentences]
        return section(self.title, *parts)


def render_inspection(title: str, panels: Sequence[Panel], *, notes: Sequence[str], figures: Sequence[Figure]) -> str:
    """Return the page as HTML."""
    return page(title, notes, [panel.html() for panel in panels], figures, generator=GENERATOR)
