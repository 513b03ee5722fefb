"""Calibration as pictures: accuracy against confidence, and the histogram of confidence."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vitrail.report.curves import percent_axis
from vitrail.report.markup import Html, folded, number, percent, table, tag, text
from vitrail.report.plots import dress
from vitrail.report.section import Section, section
from vitrail.report.svg import PAINTS, inline_svg, page_style

if TYPE_CHECKING:
    import matplotlib.axes


@dataclass(frozen=True, kw_only=True)
class Bin:
    """The images whose confidence lies in one range."""

    low: float
    """Lower end of the range, exclusive."""
    high: float
    """Upper end of the range, inclusive."""
    images: int
    """Images in it."""
    confidence: float
    """Their mean confidence; meaningless without images."""
    accuracy: float
    """The share of right answers among them; meaningless without images."""


def calibration(bins: Sequence[Bin], summary: str) -> Section:
    """Show the reliability diagram beside the histogram of confidence, and the numbers after a click."""
    filled = [each for each in bins if each.images]
    total = sum(each.images for each in filled)
    charts = tag(
        "div",
        _figure("Accuracy by confidence", "on the dashed line, confidence equals accuracy", _reliability(filled)),
        _figure("Confidence of the answers", "share of the images", _histogram(filled, total)),
        class_="two",
    )
    rows = (
        (
            text(f"{percent(each.low)} to {percent(each.high)}"),
            text(number(each.images)),
            text(percent(each.confidence)),
            text(percent(each.accuracy)),
            text(f"{100 * (each.confidence - each.accuracy):+.1f}"),
        )
        for each in filled
    )
    numbers = table(("confidence", "images", "mean confidence", "accuracy", "too sure by"), rows)
    return section(
        "Calibration", tag("p", text(summary), class_="muted"), charts, folded("The numbers of each bin", numbers)
    )


def _figure(heading: str, note: str, drawing: Html) -> Html:
    caption = tag("figcaption", tag("h3", text(heading)), tag("span", text(note), class_="key"))
    return tag("figure", caption, drawing)


def _reliability(bins: Sequence[Bin]) -> Html:
    from matplotlib.figure import Figure

    with page_style():
        figure = Figure(figsize=(400 / 72, 216 / 72))
        axes = figure.add_axes((0.115, 0.115, 0.845, 0.855))
        _bars(axes, bins, [each.accuracy for each in bins], "first")
        axes.plot([0, 1], [0, 1], color=PAINTS["muted"], linewidth=1, linestyle=(0, (4, 3)), zorder=3)
        confidence, accuracy = [each.confidence for each in bins], [each.accuracy for each in bins]
        axes.plot(confidence, accuracy, color=PAINTS["second"], linewidth=1.5, marker="o", markersize=4, zorder=4)
        axes.set_ylim(0, 1.02)
        _percents(axes)
        return inline_svg(figure, "chart-reliability", "Accuracy of answers by their confidence")


def _histogram(bins: Sequence[Bin], total: int) -> Html:
    from matplotlib.figure import Figure

    with page_style():
        figure = Figure(figsize=(400 / 72, 216 / 72))
        axes = figure.add_axes((0.115, 0.115, 0.845, 0.855))
        _bars(axes, bins, [each.images / total for each in bins], "third")
        axes.set_ylim(0, 1.06 * max(each.images for each in bins) / total)
        _percents(axes)
        return inline_svg(figure, "chart-confidence", "Share of the images by confidence")


def _bars(axes: "matplotlib.axes.Axes", bins: Sequence[Bin], heights: Sequence[float], role: str) -> None:
    width = 0.92 * (bins[0].high - bins[0].low)
    centres = [(each.low + each.high) / 2 for each in bins]
    axes.bar(centres, heights, width=width, color=PAINTS[role], alpha=0.55, zorder=2)


def _percents(axes: "matplotlib.axes.Axes") -> None:
    """Label both axes in percent."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axes.set_xlim(0, 1.015)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=6))
    axes.yaxis.set_major_locator(MaxNLocator(nbins=5))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda value, _: percent_axis(value)))
    dress(axes)
