"""Tables as a notebook shows them: plain HTML in the notebook's own style, with every text escaped."""

import html
from collections.abc import Iterable, Sequence


class Html(str):
    """Markup that is safe to show; every other string is text."""


CELL = "text-align:left;padding:.1em 1em .1em 0"
BAR = 12
"""Length of a bar that stands for 1, in letters."""


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]], *, notes: Iterable[str] = ()) -> str:
    """Return a table below a title, with sentences beneath it."""
    head = "".join(f'<th style="{CELL}">{_cell(column)}</th>' for column in columns)
    body = "".join("<tr>" + "".join(f'<td style="{CELL}">{_cell(cell)}</td>' for cell in row) + "</tr>" for row in rows)
    ending = "".join(f"<p>{_cell(note)}</p>" for note in notes)
    heading = f"<thead><tr>{head}</tr></thead>" if any(columns) else ""
    return f"<div><p><b>{_cell(title)}</b></p><table>{heading}<tbody>{body}</tbody></table>{ending}</div>"


def bar(share: float) -> Html:
    """Draw a share from 0 to 1."""
    style = f"display:inline-block;height:.7em;width:{BAR * share:.2f}em;background:#2563eb;border-radius:2px"
    return Html(f'<span style="{style}"></span>')


def _cell(content: str) -> str:
    return content if isinstance(content, Html) else html.escape(content)
