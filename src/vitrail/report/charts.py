"""Curves with intervals: on a page in its own colours, and as a picture by itself."""

import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from jaxtyping import Float

from vitrail.base.printable import printable
from vitrail.report.markup import Html, tag, text
from vitrail.report.plots import dress
from vitrail.report.svg import PAINTS, inline_svg, page_style

if TYPE_CHECKING:
    import matplotlib.axes

Points = Float[np.ndarray, "point"]
Axis = Callable[[float], str]

ROLES = ("first", "second", "third", "fourth", "fifth", "sixth")
COLOURS = {
    "muted": "#6a6f7b",
    "grid": "#e6e6e1",
    **dict(zip(ROLES, ("#2563eb", "#dd5b1d", "#12875a", "#8b4fc9", "#c0318f", "#0e8ca0"), strict=True)),
}
"""The colours of a picture by itself; a page has its own for each role."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Line:
    """One curve, with its interval if it has one."""

    name: str
    x: Points
    y: Points
    low: Points | None = None
    high: Points | None = None
    role: str = "first"
    """Its colour, one of `svg.PAINTS`."""
    dashed: bool = False
    dots: Literal["line", "both", "only"] = "line"
    """Whether points are joined by a line, marked, or both."""

    @property
    def key(self) -> str:
        """The style of its mark in the key of a page: a line, dashes or a dot."""
        colour = f"var(--{self.role})"
        if self.dots == "only":
            return f"background:{colour};width:.5rem;height:.5rem;border-radius:50%"
        if self.dashed:
            return f"background:repeating-linear-gradient(90deg,{colour} 0 .22rem,transparent .22rem .36rem)"
        return f"background:{colour}"


@dataclass(frozen=True, kw_only=True, eq=False)
class Chart:
    """Curves over one axis."""

    title: str
    lines: Sequence[Line]
    x_label: str
    y_label: str
    x_axis: Axis = "{:g}".format
    """Writes a number of the axis."""
    y_axis: Axis = "{:g}".format
    y_range: tuple[float | None, float | None] = (None, None)
    x_ticks: tuple[float, ...] | None = None
    """Where numbers stand on the axis; None lets matplotlib choose."""
    log_x: bool = False
    """Whether the axis is logarithmic."""
    log_y: bool = False
    slanted: bool = False
    """Whether the words on the axis are long, and slanted to fit."""
    whole: bool = False
    """Whether the axis counts, so that only whole numbers stand on it."""

    def html(self, name: str) -> Html:
        """Return the chart as part of a page, with its title and key above; `name` keeps its ids apart."""
        from matplotlib.figure import Figure

        with page_style():
            figure = Figure(figsize=(400 / 72, (300 if self.slanted else 236) / 72))
            axes = figure.add_axes((0.15, 0.4, 0.835, 0.57) if self.slanted else (0.15, 0.185, 0.835, 0.785))
            self.draw(axes, PAINTS)
            drawing = inline_svg(figure, name, f"{self.title}: {self.y_label} over {self.x_label}")
        keys = (
            tag("span", tag("i", style=line.key), text(line.name), class_="key") for line in self.lines if line.name
        )
        return tag("figure", tag("figcaption", tag("h3", text(self.title)), *keys), drawing)

    def picture(self, kind: Literal["png", "svg"]) -> bytes:
        """Return the chart as a file, with a legend."""
        from matplotlib.figure import Figure

        with page_style():
            figure = Figure(figsize=(6.4, 4.2), layout="constrained")
            axes = figure.add_subplot()
            self.draw(axes, COLOURS)
            axes.set_title(printable(self.title), fontsize=10, parse_math=False, wrap=True)
            if any(line.name for line in self.lines):
                axes.legend(frameon=False, fontsize=9)
            drawn = io.BytesIO()
            figure.savefig(drawn, format=kind, dpi=150, metadata={"Date": None} if kind == "svg" else None)
        return drawn.getvalue()

    def draw(self, axes: "matplotlib.axes.Axes", colours: Mapping[str, str]) -> None:
        """Draw the curves and dress the axes."""
        from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter, NullLocator

        if self.log_y:
            axes.set_yscale("log", nonpositive="mask")
        for line in self.lines:
            colour = colours[line.role]
            if line.low is not None and line.high is not None and line.dots == "only":
                axes.vlines(line.x, line.low, line.high, color=colour, linewidth=1.2)
            elif line.low is not None and line.high is not None:
                axes.fill_between(line.x, line.low, line.high, color=colour, alpha=0.16, linewidth=0)
            axes.plot(
                line.x,
                line.y,
                color=colour,
                linewidth=1.7,
                linestyle="none" if line.dots == "only" else "--" if line.dashed else "-",
                marker="" if line.dots == "line" else "o",
                markersize=4,
                label=printable(line.name),
            )
        axes.set_ylim(*self.y_range)
        if self.log_x:
            axes.set_xscale("log")
            axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axes.xaxis.set_minor_formatter(NullFormatter())
            axes.xaxis.set_minor_locator(NullLocator())
        if self.x_ticks is not None:
            axes.set_xticks(self.x_ticks)
        elif self.whole:
            axes.xaxis.set_major_locator(MaxNLocator(nbins=10, integer=True))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: printable(self.x_axis(value))))
        if self.log_y:
            axes.yaxis.set_minor_formatter(NullFormatter())
        else:
            axes.yaxis.set_major_locator(MaxNLocator(nbins=5))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: printable(self.y_axis(value))))
        if self.slanted:
            for label in axes.get_xticklabels():
                label.set(rotation=35, horizontalalignment="right", rotation_mode="anchor")
        axes.set_xlabel(printable(self.x_label), color=colours["muted"])
        axes.set_ylabel(printable(self.y_label), color=colours["muted"])
        dress(axes, colours)
