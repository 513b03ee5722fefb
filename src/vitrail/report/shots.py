"""Accuracy against the number of training images of each class, as a picture."""

import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from vitrail.base.errors import InputError
from vitrail.base.files import atomic_write
from vitrail.base.printable import printable
from vitrail.report.curves import percent_axis
from vitrail.report.svg import page_style

SUFFIXES = (".svg", ".png")
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


def check_picture(path: Path) -> None:
    """Refuse a picture that cannot be written, before the work starts."""
    if path.suffix.lower() not in SUFFIXES:
        raise InputError(f"the picture {path} cannot be written: its name must end in {' or '.join(SUFFIXES)}.")
    if not path.parent.is_dir():
        raise InputError(f"there is no folder {path.parent} to write {path.name} into; make it first.")


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
        figure.savefig(picture, format=kind, dpi=150, metadata={"Date": None} if kind == "svg" else None)
    with atomic_write(path) as file:
        file.write(picture.getvalue())
