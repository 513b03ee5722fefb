"""A study as files: a page with the figure beside the paper's, the figure as PNG and SVG, all cells as CSV; JSON."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from vitrail.base.files import atomic_write, write_whole
from vitrail.base.rows import write_csv
from vitrail.report.charts import ROLES, Chart, Line
from vitrail.report.section import Figure
from vitrail.report.study_page import StudyPage, render_study
from vitrail.studies.study import Point
from vitrail.verbs.study_result import StudyResult


def write_study(result: StudyResult) -> None:
    """Write everything, each file whole or not at all."""
    chart = chart_of(result)
    kinds: tuple[Literal["png", "svg"], ...] = ("png", "svg")
    for kind in kinds:
        write_whole(result.folder / f"study.{kind}", replace(chart, title=result.study.question).picture(kind))
    with atomic_write(result.csv) as file:
        write_csv(file, csv_rows(result))
    paper = paper_chart(result)
    charts = [chart] if paper is None else [chart, paper]
    study = result.study
    finished = sum(cell.diverged is None for cell in result.cells)
    tiles = [
        Figure(label="cells", value=str(len(result.cells)), note=f"{len(result.cells) - finished} diverged"),
        Figure(label="steps", value=str(result.steps), note="of each run"),
        *(
            Figure(
                label=f"{claim.better} above {claim.worse}",
                value=f"{100 * test.difference:+.1f}",
                note=f"p = {test.p:.3f}, {test.count} seeds",
            )
            for claim, test in list(result.tests.items())[:2]
            if test is not None
        ),
    ]
    page = StudyPage(
        title=f"Study: {study.name}",
        question=study.question,
        paper=f"{study.paper} ({study.source})" if study.source else study.paper,
        figures=tiles,
        charts=charts,
        tables=result.tables(),
        notes=tuple(f"{name} is not finished: {reason}" for name, reason in result.failed.items()),
    )
    write_whole(result.page, render_study(page).encode())
    write_whole(result.folder / "result.json", json.dumps(result.to_dict(), indent=1).encode())


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


def chart_of(result: StudyResult) -> Chart:
    """Return the figure: a curve for each line over the axis, or a mark for each variant."""
    study, lines = result.study, list(dict.fromkeys(variant.line for variant in result.variants))
    named = not study.x_label
    places = {variant.name: float(at) for at, variant in enumerate(result.variants)}
    curves = []
    for number, line in enumerate(lines):
        points = []
        for variant in (one for one in result.variants if one.line == line):
            over = result.spread(variant.name)
            x = _place(result, variant.name, places[variant.name] if named else variant.x)
            if over is not None and x is not None:
                points.append((x, over.mean, over.deviation or 0.0))
        if not points:
            continue
        x, y, deviation = np.array(sorted(points)).T
        curves.append(
            Line(
                name=line,
                x=x,
                y=y,
                low=y - deviation,
                high=y + deviation,
                role=ROLES[number % len(ROLES)],
                dots="only" if named else "both",
            )
        )
    placed = sorted({variant.x for variant in result.variants if variant.x is not None})
    ticks = tuple(places.values()) if named else tuple(placed) or None
    words = {place: name for name, place in places.items()}
    return Chart(
        title="Here",
        lines=curves,
        x_label="" if named else study.x_label,
        y_label=result.measure.replace("_", " "),
        x_axis=(lambda value: words.get(round(value), "")) if named else "{:g}".format,
        y_axis=(lambda value: f"{100 * value:.0f}%") if result.measure != "images_per_second" else "{:g}".format,
        x_ticks=ticks,
        slanted=named,
        log_x=study.compute_axis or study.x_label in ("learning rate", "training images"),
    )


def paper_chart(result: StudyResult) -> Chart | None:
    """Return the paper's own points in the same form; None where it has none."""
    points = result.study.points
    if not points:
        return None
    lines = list(dict.fromkeys(point.line for point in points))
    named = all(point.x is None for point in points)
    places = {point.name: float(at) for at, point in enumerate(points)}
    words = {place: name for name, place in places.items()}
    curves = [
        Line(
            name=line,
            x=np.array([x for x, _ in _sorted(points, line, places)]),
            y=np.array([y for _, y in _sorted(points, line, places)]),
            role=ROLES[number % len(ROLES)],
            dots="only" if named else "both",
        )
        for number, line in enumerate(lines)
    ]
    return Chart(
        title=f"The paper: {result.study.paper_label}",
        lines=curves,
        x_label="" if named else result.study.x_label,
        y_label="",
        x_axis=(lambda value: words.get(round(value), "")) if named else "{:g}".format,
        y_axis=lambda value: f"{100 * value:.0f}%",
        x_ticks=tuple(places.values()) if named else None,
        slanted=named,
        log_x=result.study.compute_axis,
    )


def _sorted(points: Sequence[Point], line: str, places: dict[str, float]) -> list[tuple[float, float]]:
    return sorted(
        (places[point.name] if point.x is None else point.x, point.value) for point in points if point.line == line
    )


def _place(result: StudyResult, variant: str, x: float | None) -> float | None:
    if not result.study.compute_axis:
        return x
    compute = result.spread(variant, "exaflops")
    return None if compute is None else compute.mean
