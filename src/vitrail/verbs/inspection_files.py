"""An inspection as files: a page, each panel as pictures, and the numbers of each as JSON."""

import json
from dataclasses import replace
from pathlib import Path

from vitrail.base.files import write_whole
from vitrail.base.outputs import Kind
from vitrail.report.drawings import drawing_files
from vitrail.report.inspection_page import render_inspection
from vitrail.report.section import Figure
from vitrail.verbs.inspection import Inspection
from vitrail.verbs.inspection_panels import panels
from vitrail.verbs.inspection_views import short

TOP = ("attention distance, first", "outlier", "effective rank")
"""How the rows of the table begin that stand at the top of the page of one model."""
PAGE, FIGURES = "inspection.html", "inspection.json"
FOLDER = Kind(name="a folder of an inspection", holds=lambda path: (path / FIGURES).is_file())


def write_inspection(result: Inspection, folder: Path) -> dict[str, Path]:
    """Write everything, each file whole or not at all; the figures come last."""
    folder.mkdir(exist_ok=True)
    shown = panels(result)
    files = {"folder": folder, "page": folder / PAGE}
    figures = replace(result, files=files).to_dict()
    for panel in shown:
        for number, drawing in enumerate(panel.drawings):
            stem = panel.key if len(panel.drawings) == 1 else f"{panel.key}-{number}"
            for suffix, content in drawing_files(drawing).items():
                write_whole(folder / f"{stem}{suffix}", content)
        if panel.key in figures["panels"]:
            write_whole(folder / f"{panel.key}.json", json.dumps(figures["panels"][panel.key]).encode())
    title = "Inside " + " and ".join(short(model) for model in result.models)
    failed = [f"{name} could not be read: {reason}" for name, reason in result.failures]
    page = render_inspection(title, shown, notes=(*result.notes, *failed), figures=_figures(result))
    write_whole(folder / PAGE, page.encode())
    write_whole(folder / FIGURES, json.dumps(figures).encode())
    return files


def _figures(result: Inspection) -> list[Figure]:
    """Return what stands at the top of the page."""
    images = [Figure(label="images", value=f"{result.images:,}", note=result.data or "")] if result.data else []
    if len(result.models) > 1:
        return images
    (table,) = result.tables()
    return images + [Figure(label=row[0], value=row[1]) for row in table.rows if row[0].startswith(TOP)]
