"""The tables of a result: text at a Python prompt, HTML in a notebook, rich text on a terminal.

The command line prints the same tables (`cli/tables.py`): each result is laid out in one place.
"""

import html
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from vitrail.base.printable import printable

_LEFT = "text-align:left;padding:.1em 1em .1em 0"
_RIGHT = "text-align:right;padding:.1em 1em .1em 0"
_BAR = 12
"""Length of a bar that stands for 1, in letters."""


class Html(str):
    """Markup in a cell, for HTML alone: text leaves it out. Every other string is escaped."""


def bar(share: float) -> Html:
    """Draw a share from 0 to 1."""
    style = f"display:inline-block;height:.7em;width:{_BAR * share:.2f}em;background:#2563eb;border-radius:2px"
    return Html(f'<span style="{style}"></span>')


@dataclass(frozen=True, kw_only=True)
class Table:
    """Rows below a title, and sentences below the rows."""

    title: str = ""
    """What the table shows; may be empty."""
    columns: tuple[str, ...] = ()
    """The heading of each column; without any there are only sentences."""
    rows: tuple[tuple[str, ...], ...] = ()
    """A cell for each column."""
    notes: tuple[str, ...] = ()
    """Sentences."""

    def is_left(self, column: int) -> bool:
        """Return whether a column is aligned left, as words are, and not right, as numbers are."""
        return column == 0 or self.columns[column] in ("", "note", "value")

    def text(self) -> str:
        """Write the table with aligned columns."""
        lines = [self.title] if self.title else []
        cells = [self.columns, *self.rows] if any(self.columns) else self.rows
        widths = [max(len(_plain(row[at])) for row in cells) for at in range(len(self.columns))] if cells else []
        for row in cells:
            aligned = [
                _plain(cell).ljust(width) if self.is_left(at) else _plain(cell).rjust(width)
                for at, (cell, width) in enumerate(zip(row, widths, strict=True))
            ]
            lines.append("  ".join(aligned).rstrip())
        return "\n".join([*map(printable, lines), *map(printable, self.notes)])

    def html(self) -> str:
        """Write the table as HTML in the notebook's own style, with every text escaped."""
        heading = f"<p><b>{_escaped(self.title)}</b></p>" if self.title else ""
        head = "".join(self._cell("th", at, name) for at, name in enumerate(self.columns))
        head = f"<thead><tr>{head}</tr></thead>" if any(self.columns) else ""
        body = "".join(
            "<tr>" + "".join(self._cell("td", at, cell) for at, cell in enumerate(row)) + "</tr>" for row in self.rows
        )
        table = f"<table>{head}<tbody>{body}</tbody></table>" if self.columns else ""
        return f"<div>{heading}{table}{''.join(f'<p>{_escaped(note)}</p>' for note in self.notes)}</div>"

    def _cell(self, kind: str, column: int, content: str) -> str:
        style = _LEFT if self.is_left(column) else _RIGHT
        return f'<{kind} style="{style}">{_escaped(content)}</{kind}>'


class Tabular(ABC):
    """A result that shows itself as tables, at a prompt and in a notebook."""

    @abstractmethod
    def tables(self) -> Sequence[Table]:
        """Return the tables, in order."""

    def __repr__(self) -> str:
        """Write the tables below each other."""
        return "\n\n".join(filter(None, (table.text() for table in self.tables())))

    def _repr_html_(self) -> str:
        """Write the tables for a notebook."""
        return "".join(table.html() for table in self.tables())


def _plain(cell: str) -> str:
    return "" if isinstance(cell, Html) else printable(cell)


def _escaped(text: str) -> str:
    """Return text that is never read as markup; `bdi` isolates the direction of its script."""
    if isinstance(text, Html):
        return text
    return f"<bdi>{html.escape(printable(text))}</bdi>" if text else ""
