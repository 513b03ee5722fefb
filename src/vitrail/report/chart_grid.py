"""Many small charts in one picture, with one legend."""

import io
from collections.abc import Sequence
from typing import Literal

from vitrail.base.printable import printable
from vitrail.report.charts import COLOURS, Chart
from vitrail.report.svg import page_style

COLUMNS = 4
WIDE, TALL = 3.1, 2.5
"""Inches of each chart."""


def chart_grid(
    charts: Sequence[Chart],
    kind: Literal["png", "svg"],
    *,
    columns: int = COLUMNS,
    wide: float = WIDE,
    tall: float = TALL,
) -> bytes:
    """Draw charts beside and below each other; one legend where the first has the lines of all, or one in each."""
    from matplotlib.figure import Figure

    columns = min(columns, len(charts))
    rows = -(-len(charts) // columns)
    with page_style():
        figure = Figure(figsize=(wide * columns, tall * rows + 0.4), layout="constrained")
        axes = figure.subplots(rows, columns, squeeze=False).ravel()
        names = [[line.name for line in chart.lines if line.name] for chart in charts]
        alike = all(set(lines) <= set(names[0]) for lines in names)
        for chart, place in zip(charts, axes, strict=False):
            chart.draw(place, COLOURS)
            place.set_title(printable(chart.title), fontsize=9, parse_math=False)
            place.set_xlabel(printable(chart.x_label), fontsize=7)
            place.set_ylabel("")
            place.tick_params(labelsize=7)
            if not alike and any(line.name for line in chart.lines):
                place.legend(frameon=False, fontsize=7)
        for place in axes[len(charts) :]:
            place.set_axis_off()
        if alike and names[0]:
            handles, labels = axes[0].get_legend_handles_labels()
            most = max(int(wide * columns / 1.2), 1)
            figure.legend(handles, labels, loc="outside upper center", ncols=most, frameon=False, fontsize=9)
        drawn = io.BytesIO()
        figure.savefig(drawn, format=kind, dpi=120, metadata={"Date": None} if kind == "svg" else None)
    return drawn.getvalue()
