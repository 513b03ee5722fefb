"""A stress test as files: a page, every chart as PNG and SVG, all figures as JSON and CSV."""

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from PIL import Image

from vitrail.base.files import atomic_write, write_whole
from vitrail.base.outputs import Kind
from vitrail.base.rows import write_csv
from vitrail.evaluation.bootstrap import Interval
from vitrail.report.chart_grid import chart_grid
from vitrail.report.charts import ROLES, Chart, Line
from vitrail.report.curves import percent_axis
from vitrail.report.explanation_page import Panel
from vitrail.report.markup import percent
from vitrail.report.overlay import Picture, picture_of
from vitrail.report.section import Figure
from vitrail.report.stress_page import StressPage, render_stress
from vitrail.studies.stress.figures import Point
from vitrail.studies.stress.result import CSV_COLUMNS, StressResult
from vitrail.studies.stress.stress_test import StressTest
from vitrail.studies.stress.worst import Worst

PAGE, FIGURES, ROWS, CURVES, CHARTS = "stress.html", "stress.json", "stress.csv", "curves", "charts"
FOLDER = Kind(name="a folder of a stress test", holds=lambda path: (path / FIGURES).is_file())
SIDE = 200
"""Pixels of the longer side of a worst image."""
HEADINGS = {
    "occlusion": ("Occlusion", "Patches are painted in the mean colour: the same ones for every model."),
    "shuffle": ("Shuffled patches", "Square tiles of the image, or patches of the grid, change places."),
    "texture": ("Texture removed", "A Kuwahara filter flattens texture and leaves edges where they are."),
    "frequency": ("Frequencies", "A Fourier mask; 1 is half a cycle a pixel. High-pass keeps the mean colour."),
    "corruptions": (
        "Common corruptions",
        "The mean over the corruptions of Hendrycks and Dietterich (2019); frost is drawn, not photographed.",
    ),
    "views": ("Rotation, scale, light", "Corners of turned images are filled by reflection."),
    "attacks": (
        "Attacks",
        "Pixels fitted to each model by projected gradient descent. Stronger attacks exist, so this is an upper bound.",
    ),
    "resolution": ("Other sizes", "Images brought to another size than in training; positions are resized."),
}


def write_stress(result: StressResult, folder: Path) -> dict[str, Path]:
    """Write everything, each file whole or not at all; the figures come last."""
    (folder / CHARTS).mkdir(parents=True, exist_ok=True)
    charts = {test.name: chart_of(result, test) for test in result.tests}
    overview = [chart for name, chart in charts.items() if not _is_corruption(result, name)]
    overview += mean_charts(result)
    for name, chart in charts.items():
        write_whole(folder / CHARTS / f"{name}.png", chart.picture("png"))
        write_whole(folder / CHARTS / f"{name}.svg", chart.picture("svg"))
    write_whole(folder / f"{CURVES}.png", chart_grid(overview, "png"))
    write_whole(folder / f"{CURVES}.svg", chart_grid(overview, "svg"))
    with atomic_write(folder / ROWS) as file:
        write_csv(file, [CSV_COLUMNS, *result.rows()])
    files = {"folder": folder, "page": folder / PAGE}
    write_whole(folder / PAGE, render_stress(_page(result, charts)).encode())
    write_whole(folder / FIGURES, json.dumps(replace(result, files=files).to_dict(), indent=1).encode())
    return files


def chart_of(result: StressResult, test: StressTest) -> Chart:
    """Return the curves of all models under one test, levels at equal distances, clean images among them."""
    levels = sorted((test.start, *test.levels))
    labels = ["clean" if level == test.start else test.written(level) for level in levels]
    lines = []
    for number, model in enumerate(result.models):
        clean = Point(level=test.start, accuracy=result.summaries[number].clean)
        points = sorted((clean, *result.curve(model, test.name)), key=lambda point: point.level)
        places = [float(levels.index(point.level)) for point in points]
        lines.append(_line(model, number, places, [point.accuracy for point in points]))
    return _chart(test.title, test.axis, lines, labels)


def mean_charts(result: StressResult) -> list[Chart]:
    """Return the mean accuracy over corruptions by severity; nothing where none was run."""
    tests = [test for test in result.tests if test.group == "corruptions"]
    if not tests:
        return []
    levels, lines = [0, *tests[0].levels], []
    for number, model in enumerate(result.models):
        summary = result.summaries[number]
        shares = [summary.clean, *(point.accuracy for point in summary.severities)]
        lines.append(_line(model, number, [float(place) for place in range(len(levels))], shares))
    labels = ["clean", *(tests[0].written(level) for level in tests[0].levels)]
    title = f"Mean over {len(tests)} corruption{'s' if len(tests) > 1 else ''}"
    return [_chart(title, "severity", lines, labels)]


def _line(model: str, number: int, places: Sequence[float], shares: Sequence[Interval]) -> Line:
    return Line(
        name=model,
        x=np.array(places, dtype=float),
        y=np.array([share.value for share in shares]),
        low=np.array([share.low for share in shares]),
        high=np.array([share.high for share in shares]),
        role=ROLES[number % len(ROLES)],
        dots="both",
    )


def _chart(title: str, axis: str, lines: list[Line], labels: list[str]) -> Chart:
    return Chart(
        title=title,
        lines=lines,
        x_label=axis,
        y_label="accuracy",
        x_axis=lambda place: labels[round(place)] if 0 <= round(place) < len(labels) else "",
        y_axis=percent_axis,
        y_range=(0.0, None),
        x_ticks=tuple(float(place) for place in range(len(labels))),
    )


def _is_corruption(result: StressResult, name: str) -> bool:
    return next(test.group for test in result.tests if test.name == name) == "corruptions"


def _page(result: StressResult, charts: dict[str, Chart]) -> StressPage:
    groups: dict[str, list[Chart]] = {}
    each: dict[str, list[Chart]] = {}
    for test in result.tests:
        heading = HEADINGS[test.group][0]
        if test.group == "corruptions":
            each.setdefault(heading, []).append(charts[test.name])
            groups[heading] = mean_charts(result)
        else:
            groups.setdefault(heading, []).append(charts[test.name])
    return StressPage(
        title=f"Under stress: {', '.join(result.models)}",
        figures=[
            Figure(label=f"{model}, clean", value=percent(clean.value), note=_interval(clean.low, clean.high))
            for model, clean in zip(result.models, (summary.clean for summary in result.summaries), strict=True)
        ],
        charts=groups,
        folded=each,
        explanations=dict(HEADINGS.values()),
        tables=result.tables(wide=True),
        worst=[_panel(worst) for worst in result.worst],
        notes=tuple(f"{name} could not be read: {reason}" for name, reason in result.failures),
    )


def _interval(low: float, high: float) -> str:
    return f"{percent(low)} to {percent(high)} (95%)" if not math.isnan(low) else ""


def _panel(worst: Worst) -> Panel:
    answer = f"{worst.truth} \N{RIGHTWARDS ARROW} {worst.answer} {percent(worst.confidence, 0)}"
    at = f"{worst.test.name} at {worst.test.written(worst.level)}"
    return Panel(picture=_pair(worst), lines=(at, answer, worst.model, Path(worst.image).name))


def _pair(worst: Worst) -> Picture:
    """Put the clean image beside the stressed one, in the same size."""
    clean = picture_of(worst.clean, SIDE)
    height, width = clean.shape[:2]
    changed = picture_of(worst.changed, SIDE)
    if changed.shape != clean.shape:
        changed = np.asarray(Image.fromarray(changed).resize((width, height), Image.Resampling.NEAREST))
    gap = np.full((height, 6, 3), 255, np.uint8)
    return np.concatenate([clean, gap, changed], axis=1)
