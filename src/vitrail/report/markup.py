"""HTML from plain functions: every tag is closed, every text is escaped."""

import html
import math
import re
from collections.abc import Iterable, Sequence
from typing import NewType

Html = NewType("Html", str)
"""Markup that is safe to show; everything else goes through `text`."""

_UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
_VOID = ("img", "meta")


def printable(content: str) -> str:
    """Replace characters that UTF-8 or XML cannot hold, such as broken bytes in the name of a file."""
    return _UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", content)


def text(content: str) -> Html:
    """Escape text: none of it is read as markup."""
    return Html(html.escape(printable(content)))


def join(parts: Iterable[Html], between: str = "") -> Html:
    """Concatenate markup."""
    return Html(between.join(parts))


def tag(kind: str, *inside: Html, **attributes: str) -> Html:
    """Return one element; an attribute may end in `_` where Python has the word, and `_` within it is `-`."""
    opening = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{text(value)}"' for name, value in attributes.items() if value
    )
    return Html(f"<{kind}{opening}>" if kind in _VOID else f"<{kind}{opening}>{''.join(inside)}</{kind}>")


def name(content: str) -> Html:
    """Return the name of a class or a file, isolated from the direction of the text around it."""
    return tag("bdi", text(content))


def table(columns: Sequence[str], rows: Iterable[Sequence[Html]], *, kind: str = "") -> Html:
    """Return a table that scrolls when it is wider than the screen; all but the first column are numbers."""
    head = tag("tr", *(tag("th", text(column), scope="col") for column in columns))
    body = (tag("tr", tag("th", row[0], scope="row"), *(tag("td", cell) for cell in row[1:])) for row in rows)
    inside = tag("table", tag("thead", head), tag("tbody", *body), class_=kind)
    return tag("div", inside, class_="scroll")


def bar(share: float, label: str) -> Html:
    """Return a label beside a bar as long as the share."""
    width = 0.0 if math.isnan(share) else min(max(share, 0.0), 1.0)
    return tag("span", text(label), class_="bar", style=f"--share:{width:.3g}")


def folded(summary: str, *inside: Html) -> Html:
    """Return content that opens on a click."""
    return tag("details", tag("summary", text(summary)), *inside)


def section(heading: str, *inside: Html, kind: str = "") -> Html:
    """Return one part of the page."""
    return tag("section", tag("h2", text(heading)), *inside, class_=kind)


def percent(share: float, digits: int = 1) -> str:
    """Write 0.912 as 91.2%, and NaN as a dash."""
    return "\N{EN DASH}" if math.isnan(share) else f"{100 * share:.{digits}f}%"


def number(value: float | int | str) -> str:
    """Write a number with four significant digits, or all digits of a whole one; text stays as it is."""
    if isinstance(value, str):
        return value
    if isinstance(value, int):
        return f"{value:,}"
    if not math.isfinite(value):
        return str(value)
    if value != 0 and not 1e-4 <= abs(value) < 1e15:
        return f"{value:.3e}"
    digits = max(0, 3 - math.floor(math.log10(abs(value)))) if value else 0
    written = f"{value:,.{digits}f}"
    return written.rstrip("0").rstrip(".") if "." in written else written


def short(value: float | int | str) -> str:
    """Write 86567656 as 86.6 M, for a place with little room."""
    if isinstance(value, str) or not 1e5 <= abs(value) < 1e18:
        return number(value)
    size, letter = next((size, letter) for size, letter in _SIZES if abs(value) >= size)
    scaled = value / size
    return f"{scaled:.{1 if abs(scaled) < 99.95 else 0}f} {letter}"


_SIZES = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
