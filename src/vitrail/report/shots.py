"""Accuracy against the number of training images of each class, as a picture."""

import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from vitrail.base.files import atomic_write
from vitrail.base.outputs import Kind, marked
from vitrail.base.printable import printable
from vitrail.report.curves import percent_axis
from vitrail.report.svg import page_style

CREATOR = "Vitrail few-shot"
"""Stands in the header of a picture, which is recognised by it."""
SHOTS = Kind(name="a plot of few-shot accuracies", suffixes=(".svg", ".png"), holds=marked(CREATOR.encode()))
COLOURS = ("#2563eb", "#dd5b1d", "#12875a", "#8b4fc9")
MARKERS = "osD^v<>"
ASIDE = 1.025
"""Distance between points of the same shots, as a factor: it keeps their bars apart."""


@dataclass(frozen=True, kw_only=True)
class ShotsLine:
    """One method."""

    name: str
    shots: tuple[float, ...]
    """Images of each class."""
    accuracies: tuple[float, ...]
    """The mean over draws, from 0 to 1."""
    spreads: tuple[float, ...]
    """The deviation over draws; 0 for a single draw."""


def write_shots(lines: Sequence[ShotsLine], path: Path, *, title: str) -> None:
    """Draw accuracy over shots on a logarithmic axis, with bars for the spread, and write the picture."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, NullLocator

    kind = path.suffix.lower().removeprefix(".")
    with page_style():
        figure = Figure(figsize=(6.4, 4.2), layout="constrained")
        axes = figure.add_subplot()
        for number, line in enumerate(lines):
            colour, marker = COLOURS[number % len(COLOURS)], MARKERS[number % len(MARKERS)]
            aside = ASIDE ** (number - (len(lines) - 1) / 2)
            places = [shots * aside for shots in line.shots]
            axes.errorbar(
                places, line.accuracies, line.spreads, color=colour, marker=marker, capsize=3, label=line.name
            )
        axes.set_xscale("log")
        axes.set_xticks(sorted({shots for line in lines for shots in line.shots}))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda shots, _: f"{shots:,.6g}"))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.yaxis.set_major_formatter(FuncFormatter(lambda share, _: percent_axis(share)))
        axes.set_xlabel("training images of each class")
        axes.set_ylabel("accuracy")
        axes.set_title(printable(title), fontsize=10, parse_math=False, wrap=True)
        axes.grid(True, color="#e6e6e1")
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False)
        picture = io.BytesIO()
        metadata = {"Date": None, "Creator": CREATOR} if kind == "svg" else {"Software": CREATOR}
        figure.savefig(picture, format=kind, dpi=150, metadata=metadata)
    with atomic_write(path) as file:
        file.write(picture.getvalue())
