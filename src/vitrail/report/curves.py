"""The curves of a run: measurements during training."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from vitrail.report.markup import Html, number, tag, text
from vitrail.report.plots import Line, compact, line_chart
from vitrail.report.section import Section, section, sentence
from vitrail.report.series import Points, Series, series

Rows = Sequence[Mapping[str, object]]

WIDE = 100.0
"""When nearly all values span more than this factor, the axis of a loss or a norm is logarithmic."""


@dataclass(frozen=True, kw_only=True)
class Curve:
    """How one measurement is drawn and named."""

    key: str
    """Its name in the rows."""
    label: str = ""
    """Its name beside the chart."""
    role: str
    """Its colour."""
    dots: bool = False
    """Whether its points are drawn."""
    noisy: bool = False
    """Whether it is smoothed."""
    peak: bool = False
    """Whether its largest value is shown instead of its last."""


def curves(rows: Rows, split: str | None) -> Section:
    """Show loss, accuracy, learning rate and gradient norm, where measured; `split` is the evaluated split."""
    name = "validation" if split == "val" else split or "held out"
    loss = (
        Curve(key="loss", label="training", role="first", noisy=True),
        Curve(key="val_loss", label=name, role="second", dots=True),
    )
    accuracy = (
        Curve(key="accuracy", label="training", role="first", noisy=True),
        Curve(key="val_accuracy", label=name, role="second", dots=True),
        Curve(key="val_top5", label=f"{name}, top 5", role="third", dots=True),
        Curve(key="patch_accuracy", label="hidden patches", role="first", noisy=True),
        Curve(key="probe_accuracy", label="few-shot", role="second", dots=True),
        Curve(key="probe_found", label="copies found", role="second", dots=True),
    )
    rate = (Curve(key="learning_rate", label="at most", role="third", peak=True),)
    norm = (Curve(key="gradient_norm", label="last", role="fourth", noisy=True),)
    charts = [
        _chart(rows, "Loss", loss, compact, may_be_wide=True),
        _chart(rows, "Accuracy", accuracy, percent_axis),
        _chart(rows, "Learning rate", rate, compact),
        _chart(rows, "Gradient norm", norm, compact, may_be_wide=True),
    ]
    figures = [chart for chart in charts if chart]
    if not figures:
        return sentence("Curves", "Nothing has been measured yet.")
    length = number(int(_largest(rows, "step")))
    note = f"To the right: steps; {length} in all. A faint curve is as measured, the strong one before it an average."
    return section("Curves", tag("div", *figures, class_="two"), tag("p", text(note), class_="muted"))


def _chart(
    rows: Rows, heading: str, kinds: Sequence[Curve], write: Callable[[float], str], *, may_be_wide: bool = False
) -> Html | None:
    measured = [(curve, series(rows, curve.key)) for curve in kinds]
    lines = [(curve, points) for curve, points in measured if len(points)]
    lost = [step for _, points in measured for step in points.lost]
    if not lines and not lost:
        return None
    parts = [tag("figcaption", tag("h3", text(heading)), *(_legend(curve, points, write) for curve, points in lines))]
    if lines:
        values = np.concatenate([points.values for _, points in lines])
        parts.append(
            line_chart(
                [Line(points=points, role=kind.role, dots=kind.dots, noisy=kind.noisy) for kind, points in lines],
                name=f"chart-{kinds[0].key}",
                description=f"{heading} over the steps of the run",
                axis=write,
                last_step=_largest(rows, "step"),
                log=may_be_wide and _is_wide(values),
            )
        )
    if lost:
        times = "once," if len(lost) == 1 else f"{len(lost):,} times, first"
        note = f"Not a finite number {times} at step {number(int(min(lost)))}."
        parts.append(tag("p", text(note), class_="muted"))
    return tag("figure", *parts)


def _legend(curve: Curve, points: Series, write: Callable[[float], str]) -> Html:
    """Name a curve beside its colour, with its last or its largest value."""
    colour = tag("i", style=f"background:var(--{curve.role})")
    value = float(points.values.max() if curve.peak else points.values[-1])
    label = tag("b", text(write(float(f"{value:.3g}"))))
    return tag("span", colour, text(f"{curve.label} "), label, class_="key")


def percent_axis(value: float) -> str:
    """Write 0.925 as 92.5%, and 0.9 as 90%."""
    return f"{100 * value:.4g}%"


def _is_wide(values: Points) -> bool:
    low, high = np.quantile(values, (0.005, 0.995))
    return bool(values.min() > 0 and high > WIDE * low)


def _largest(rows: Rows, key: str) -> float:
    """Return the largest value of a measurement, or 0."""
    line = series(rows, key)
    return float(line.values.max()) if len(line) else 0.0
