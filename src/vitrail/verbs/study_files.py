"""A study as files: a page with the figure beside the paper's, the figure as PNG and SVG, all cells as CSV; JSON."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from vitrail.base.files import atomic_write, write_whole
from vitrail.base.rows import write_csv
from vitrail.report.chart_grid import chart_grid
from vitrail.report.charts import ROLES, Chart, Line
from vitrail.report.section import Figure
from vitrail.report.study_page import StudyPage, render_study
from vitrail.studies.scale import SPEED_SIZES
from vitrail.studies.study import Study
from vitrail.verbs.study_result import SHARES, WORDS, StudyResult

WIDE, TALL = 4.4, 3.3
"""Inches of each chart of the picture."""
LOGARITHMIC = ("learning rate", "training images")
"""Axes on which numbers are multiples of each other."""


def write_study(result: StudyResult) -> None:
    """Write everything, each file whole or not at all."""
    charts = [chart_of(result, measure) for measure in result.study.measures]
    paper = paper_chart(result)
    charts += [] if paper is None else [paper]
    kinds: tuple[Literal["png", "svg"], ...] = ("png", "svg")
    for kind in kinds:
        write_whole(result.folder / f"study.{kind}", chart_grid(charts, kind, columns=2, wide=WIDE, tall=TALL))
    with atomic_write(result.csv) as file:
        write_csv(file, csv_rows(result))
    write_whole(result.page, render_study(page_of(result, charts)).encode())
    write_whole(result.folder / "result.json", json.dumps(result.to_dict(), indent=1).encode())


def page_of(result: StudyResult, charts: Sequence[Chart]) -> StudyPage:
    """Return the content of the page."""
    study = result.study
    finished = sum(cell.diverged is None for cell in result.cells)
    tiles = [
        Figure(label="cells", value=str(len(result.cells)), note=f"{len(result.cells) - finished} diverged"),
        *([] if study.task == "speed" else [Figure(label="steps", value=f"{result.steps:,}", note="of each cell")]),
        *(
            Figure(
                label=f"{claim.better} above {claim.worse}",
                value=f"{100 * test.difference:+.1f}",
                note=f"points, {test.chance}, {test.count} seeds",
            )
            for claim, test in list(result.tests.items())[:2]
            if test is not None
        ),
    ]
    return StudyPage(
        title=f"Study: {study.name}",
        question=study.question,
        paper=result.paper,
        figures=tiles,
        charts=charts,
        tables=result.tables(),
        notes=tuple(f"{name} is not finished: {reason}" for name, reason in result.failed.items()),
    )


def csv_rows(result: StudyResult) -> list[Sequence[str | int | float | None]]:
    """Return a row for each cell, with every figure."""
    names = sorted({name for cell in result.cells for name in cell.figures})
    lines = {variant.name: variant.line for variant in result.variants}
    head: list[Sequence[str | int | float | None]] = [("study", "variant", "line", "seed", "diverged", *names)]
    return head + [
        (
            result.study.name,
            cell.variant,
            lines[cell.variant],
            cell.seed,
            cell.diverged or "",
            *(cell.figures.get(name) for name in names),
        )
        for cell in result.cells
    ]


def chart_of(result: StudyResult, measure: str) -> Chart:
    """Return the figure of a measure: a curve for each line over the axis, or a mark for each variant."""
    study = result.study
    points = []
    for variant in result.variants:
        over = result.spread(variant.name, measure)
        compute = result.teraflops(variant.name)
        x = variant.x if not study.compute_axis else compute.mean if compute else None
        if over is not None:
            points.append(
                _Mark(line=variant.line, name=variant.name, x=x, y=over.mean, deviation=over.deviation or 0.0)
            )
    share = measure in SHARES
    chart = _chart(points, study, "Here: " + WORDS.get(measure, measure))
    ticks = tuple(sorted({variant.x for variant in result.variants if variant.x is not None}))
    if study.task == "speed":  # whole patches: 378 and 384 pixels are one place on the axis
        ticks = tuple(float(size) for size in SPEED_SIZES)
    return replace(
        chart,
        x_label=chart.x_label.replace("exaFLOPs", "teraFLOPs"),  # our models are that much smaller
        y_label="accuracy" if share else WORDS.get(measure, measure),
        y_axis=_percent if share else "{:g}".format,
        log_y=not share and study.task == "speed",
        x_ticks=chart.x_ticks or ticks or None,
    )


def paper_chart(result: StudyResult) -> Chart | None:
    """Return the paper's own points in the same form; None where it has none."""
    study = result.study
    if not study.points:
        return None
    points = [_Mark(line=one.line, name=one.name, x=one.x, y=one.value) for one in study.points]
    order = [variant.line for variant in result.variants]
    return replace(_chart(points, study, f"The paper: {study.paper_label}", dict.fromkeys(order)), y_axis=_percent)


@dataclass(frozen=True, kw_only=True)
class _Mark:
    """A point of a figure."""

    line: str
    name: str
    x: float | None
    """None where only the name counts."""
    y: float
    deviation: float = 0.0


def _chart(marks: Sequence[_Mark], study: Study, title: str, order: Iterable[str] = ()) -> Chart:
    """Draw marks over the axis of a study, or over their names."""
    named = all(mark.x is None for mark in marks)
    lines = list(dict.fromkeys(mark.line for mark in marks if mark.line or named)) or [""] * bool(marks)
    if known := [line for line in order if line in lines]:  # a family has one colour in both figures
        lines = known + [line for line in lines if line not in known]
    places = {mark.name: float(at) for at, mark in enumerate(marks)}
    words = {place: name for name, place in places.items()}
    curves = []
    for number, line in enumerate(lines):
        own = [mark for mark in marks if mark.line == line or not (mark.line or named)]
        x = np.array([places[mark.name] if mark.x is None else mark.x for mark in own])
        ascending = np.argsort(x, kind="stable")
        x, y = x[ascending], np.array([mark.y for mark in own])[ascending]
        spread = np.array([mark.deviation for mark in own])[ascending]
        curves.append(
            Line(
                name=line,
                x=x,
                y=y,
                low=y - spread,
                high=y + spread,
                role=ROLES[number % len(ROLES)],
                dashed=number >= len(ROLES),
                dots="only" if named else "both",
            )
        )
    return Chart(
        title=title,
        lines=curves,
        x_label="" if named else study.x_label,
        y_label="accuracy",
        x_axis=(lambda value: words.get(round(value), "")) if named else _short,
        x_ticks=tuple(places.values()) if named else None,
        slanted=named,
        log_x=not named and (study.compute_axis or study.x_label in LOGARITHMIC),
    )


def _percent(value: float) -> str:
    return f"{100 * value:.3g}%"


def _short(value: float) -> str:
    """Write a number of an axis: 1.3M, 750, 3e-05."""
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if size <= abs(value) < 1e9:
            return f"{value / size:.3g}{letter}"
    return f"{value:g}"
