"""The runs of fine-tuning before its last: learning rates on the dev split, and other seeds."""

from collections.abc import Sequence
from dataclasses import dataclass

from vitrail.report.curves import percent_axis
from vitrail.report.markup import Html, number, percent, table, tag, text
from vitrail.report.plots import dress
from vitrail.report.section import Section, section
from vitrail.report.svg import PAINTS, inline_svg, page_style


@dataclass(frozen=True, kw_only=True)
class TriedRate:
    """A learning rate that was tried, and its figures on the dev split."""

    rate: float
    accuracy: float
    loss: float
    images: int
    """Images of the dev split."""


@dataclass(frozen=True, kw_only=True)
class SeedScore:
    """The accuracy of a run with another seed."""

    seed: int
    accuracy: float


def sweep_section(rows: Sequence[TriedRate], best: float) -> Section:
    """Show the dev accuracy of each learning rate, as a chart and as a table."""
    note = (
        f"Each rate trained on the training images without the {number(rows[0].images)} of the dev split, and "
        f"was measured on those. The best, {best:g}, then trained on all training images."
    )
    cells = (
        (text(f"{row.rate:g}"), text(percent(row.accuracy, 2)), text(f"{row.loss:.4f}"))
        for row in sorted(rows, key=lambda row: row.rate)
    )
    rates = table(("learning rate", "dev accuracy", "dev loss"), cells)
    columns = tag("div", tag("figure", _chart(rows, best)), rates, class_="two")
    return section("Learning rate", columns, tag("p", text(note)))


def seeds_section(rows: Sequence[SeedScore]) -> Section:
    """List the accuracy of the same run with other seeds."""
    cells = ((text(str(row.seed)), text(percent(row.accuracy, 2))) for row in rows)
    return section("Other seeds", table(("seed", "accuracy"), cells))


def _chart(rows: Sequence[TriedRate], best: float) -> Html:
    from matplotlib.figure import Figure
    from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

    points = sorted((row.rate, row.accuracy) for row in rows)
    rates, accuracies = zip(*points, strict=True)
    with page_style():
        figure = Figure(figsize=(400 / 72, 216 / 72))
        axes = figure.add_axes((0.115, 0.115, 0.87, 0.855))
        axes.set_xscale("log")
        axes.plot(rates, accuracies, color=PAINTS["first"], linewidth=1.7, marker="o", markersize=4, zorder=3)
        best_accuracy = accuracies[rates.index(best)]
        axes.plot([best], [best_accuracy], color=PAINTS["second"], marker="o", markersize=8, zorder=4)
        axes.xaxis.set_major_locator(FixedLocator(rates))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(FuncFormatter(lambda rate, _: f"{rate:g}"))
        axes.yaxis.set_major_locator(MaxNLocator(nbins=5))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: percent_axis(value)))
        dress(axes)
        return inline_svg(figure, "chart-sweep", "Dev accuracy of each learning rate")
