"""A matplotlib figure as SVG inside a page: small, reproducible, in the colours and fonts of the page.

Figures are drawn with the colours of `PAINTS`, which stand for the page's own, in its light and its dark style.
"""

import io
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING
from xml.etree import ElementTree  # it reads only what matplotlib has just written

from vitrail.report.markup import Html, printable

if TYPE_CHECKING:
    import matplotlib.figure

PAINTS = {
    "muted": "#010101",
    "grid": "#020202",
    "first": "#030303",
    "second": "#040404",
    "third": "#050505",
    "fourth": "#060606",
    "fifth": "#070707",
    "sixth": "#080808",
}
"""Roles of colour, and the hexadecimal that stands for each while matplotlib draws."""

_NAMESPACE = re.compile(r"\{[^}]*\}")
_LONG = re.compile(r"-?\d+\.\d\d+(?:e-?\d+)?")
_POINTER = re.compile(r"#([\w.]+)")
_ROLES = {paint: f"var(--{role})" for role, paint in PAINTS.items()}


@contextmanager
def page_style() -> Iterator[None]:
    """Draw with matplotlib's defaults, whatever the user has set; text stays text."""
    import matplotlib as mpl

    with mpl.rc_context(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r"Glyph .* missing", category=UserWarning)  # the browser has it
        mpl.rcdefaults()
        mpl.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "vitrail", "font.size": 10})
        mpl.rcParams["text.parse_math"] = False  # also of ticks, which are made while it is drawn
        yield


def inline_svg(figure: "matplotlib.figure.Figure", name: str, description: str) -> Html:
    """Return the figure as an `<svg>` element; `name` keeps its ids apart from those of other figures.

    No text becomes a formula, whatever dollar signs it has.
    """
    from matplotlib.text import Text

    for text in figure.findobj(Text):
        text.set_parse_math(False)
        text.set_text(printable(text.get_text()))
    svg = io.StringIO()
    bare = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    with page_style():
        figure.savefig(svg, format="svg", transparent=True, metadata=bare)
    root = ElementTree.fromstring(svg.getvalue())  # noqa: S314 - matplotlib has just written it
    used = {pointer for node in root.iter() for value in node.attrib.values() for pointer in _POINTER.findall(value)}
    for node in root.iter():
        node.tag = _NAMESPACE.sub("", node.tag)
        node.text = node.text if node.tag == "text" else None
        node.tail = None
        node.attrib = dict(_tidied(node.attrib, name, used))
    for style in root.findall("defs[style]"):
        root.remove(style)
    while _drop_empty(root):
        pass
    box = root.attrib["viewBox"]
    root.attrib = {"viewBox": box, "role": "img", "aria-label": printable(description)}
    return Html(ElementTree.tostring(root, encoding="unicode", short_empty_elements=False))


def _tidied(attributes: dict[str, str], name: str, used: set[str]) -> Iterator[tuple[str, str]]:
    """Yield the attributes that matter: rounded, without namespaces, with the page's colours and own ids."""
    for key, value in attributes.items():
        key = _NAMESPACE.sub("", key)
        if key == "id":
            if value in used:
                yield key, f"{name}-{value}"
        elif key == "style":
            declarations = [part.strip() for part in value.split(";") if not part.strip().startswith("font")]
            style = ";".join(declarations)
            for paint, role in _ROLES.items():
                style = style.replace(paint, role)
            if style:
                yield key, style.replace(": ", ":")
        elif not (key == "transform" and value.startswith("rotate(-0 ")):
            short = _LONG.sub(lambda match: f"{float(match[0]):.1f}".removesuffix(".0"), value)
            short = _POINTER.sub(lambda match: f"#{name}-{match[1]}" if match[1] in used else match[0], short)
            yield key, " ".join(short.split())


def _drop_empty(root: ElementTree.Element) -> bool:
    """Remove groups that draw nothing; return whether there were any."""
    empty = [
        (parent, child)
        for parent in root.iter()
        for child in parent
        if child.tag in ("g", "defs") and len(child) == 0
        if not child.text
    ]
    for parent, child in empty:
        parent.remove(child)
    return bool(empty)
