"""Pages read back: what their tables say, and where the curves of their charts go in the units of their axes."""

import re
from html.parser import HTMLParser
from xml.etree.ElementTree import Element, TreeBuilder

import numpy as np

VOID = ("br", "img", "meta")


class _Tree(HTMLParser):
    """A page as a tree; a tag that is closed out of order is an error."""

    def __init__(self) -> None:
        super().__init__()
        self.builder, self.open = TreeBuilder(), list[str]()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.builder.start(tag, {name: value or "" for name, value in attrs})
        if tag in VOID:
            self.builder.end(tag)
        else:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag
        self.builder.end(tag)

    def handle_data(self, data: str) -> None:
        if self.open:
            self.builder.data(data)


def read(page: str) -> Element:
    """Read a page, or a part of one."""
    reader = _Tree()
    reader.feed(f"<div>{page}</div>")
    reader.close()
    assert reader.open == []
    return reader.builder.close()


def words(node: Element) -> str:
    """The text of an element."""
    return "".join(node.itertext()).strip()


def headings(page: Element) -> list[str]:
    return [words(node) for node in page.iter("h2")]


def part(page: Element, heading: str) -> Element:
    """The section with this heading."""
    (section,) = (
        node for node in page.iter("section") if (title := node.find("h2")) is not None if words(title) == heading
    )
    return section


def tables(node: Element) -> list[list[list[str]]]:
    """Every table below: rows of cells."""
    return [[[words(cell) for cell in row] for row in table.iter("tr")] for table in node.iter("table")]


def pairs(node: Element) -> dict[str, str]:
    """The rows of tables with two columns: names beside values."""
    return {row[0]: row[1] for table in tables(node) for row in table if len(row) == 2}


def settings(section: Element) -> dict[str, str]:
    """Every setting by its dotted name: groups have headings, and their tables have what is within."""
    values: dict[str, str] = {}
    for group in section.iter("div"):
        if group.find("table") is not None:
            above = "".join(f"{words(heading)}." for heading in group.findall("h3"))
            values |= {f"{above}{name}": value for name, value in pairs(group).items()}
    return values


def figure(page: Element, heading: str) -> Element:
    """The chart with this heading."""
    return _titled(page, "figure", "figcaption/h3", heading)


def legend(chart: Element) -> dict[str, str]:
    """The names beside a chart, and the value beside each."""
    keys = [node for node in chart.iter("span") if node.get("class") == "key"]
    return {words(key).removesuffix(value).strip(): value for key in keys for value in (words(next(key.iter("b"))),)}


def curve_points(chart: Element, role: str) -> np.ndarray:
    """The points of the strong curve of a colour, as step and value, by the numbers at the axes of the chart."""
    (across, up), points = ticks(chart), curve(chart, role)
    return np.stack([_scale(across, points[:, 0]), _scale(up, points[:, 1])], axis=1)


def ticks(chart: Element) -> tuple[np.ndarray, np.ndarray]:
    """Where the lines of the grid are, and what is written at them: those that stand, and those that lie."""
    across, up = [], []
    for group in chart.iter("g"):
        label, line = group.find("./g/text"), group.find("./g/path")
        if label is not None and line is not None and "var(--grid)" in line.get("style", ""):
            right, down = _points(line)[0]
            stands = "middle" in label.get("style", "")
            (across if stands else up).append((right if stands else down, _value(words(label))))
    return np.array(across), np.array(up)


def curve(chart: Element, role: str) -> np.ndarray:
    """The points of the strong curve of a colour, in pixels."""
    styles = ((path, path.get("style", "")) for path in chart.iter("path"))
    (line,) = (path for path, style in styles if f"stroke:var(--{role})" in style and "stroke-width:1.7" in style)
    return _points(line)


def _titled(page: Element, kind: str, title: str, heading: str) -> Element:
    (element,) = (node for node in page.iter(kind) if heading in map(words, node.findall(title)))
    return element


def _points(path: Element) -> np.ndarray:
    return np.array(re.findall(r"[ML] (\S+) (\S+)", path.get("d", "")), dtype=np.float64)


def _value(label: str) -> float:
    """Read 12.5%, 1.5k or 2e-4."""
    if label.endswith("%"):
        return float(label[:-1]) / 100
    return float(label[:-1]) * 1e3 if label.endswith("k") else float(label)


def _scale(marks: np.ndarray, pixels: np.ndarray) -> np.ndarray:
    at, values = marks.T
    slope, start = np.polyfit(at, values, 1)
    np.testing.assert_allclose(slope * at + start, values, atol=abs(slope) * 0.2)  # the axis is linear
    return slope * pixels + start
