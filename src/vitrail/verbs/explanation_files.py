"""Explanations as files: a picture and a map of each image, a page, and everything as JSON."""

import io
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from vitrail.analysis.methods import Method, is_signed, needs_class
from vitrail.base.files import write_whole
from vitrail.base.outputs import Kind
from vitrail.report.explanation_page import ExplanationPage, ImageStory, MethodStory, Panel, render_explanations
from vitrail.report.markup import percent
from vitrail.verbs.explanation import Explanation, HeatMap
from vitrail.verbs.explanations import RANDOM, TRUST_NOTE, Explanations

PAGE, FIGURES = "explanations.html", "explanations.json"
FOLDER = Kind(name="a folder of explanations", holds=lambda path: (path / FIGURES).is_file())


def write_explanations(result: Explanations, folder: Path) -> dict[str, Path]:
    """Write everything, each file whole or not at all; the figures come last."""
    folder.mkdir(exist_ok=True)
    stems = [_stem(place, image) for place, image in enumerate(result.images)]
    for stem, image in zip(stems, result.images, strict=True):
        write_whole(folder / f"{stem}.png", image.png())
        for number, heat in enumerate(image.maps):
            write_whole(folder / f"{stem}.{number}.npy", _npy(heat))
    files = {"folder": folder, "page": folder / PAGE}
    write_whole(folder / PAGE, render_explanations(_page(result)).encode())
    figures = replace(result, files=files).to_dict()
    for stem, image in zip(stems, figures["images"], strict=True):
        image["picture"] = f"{stem}.png"
        image["maps"] = [heat | {"file": f"{stem}.{number}.npy"} for number, heat in enumerate(image["maps"])]
    write_whole(folder / FIGURES, json.dumps(figures, indent=1).encode())
    return files


def _stem(place: int, image: Explanation) -> str:
    """Return a name for files: a number, since images of different folders may have the same name."""
    plain = re.sub(r"[^\w.-]+", "-", Path(image.name).stem)[:80]
    return f"{place:04d}-{plain}"


def _npy(heat: HeatMap) -> bytes:
    out = io.BytesIO()
    np.save(out, heat.values.astype(np.float32))
    return out.getvalue()


def _page(result: Explanations) -> ExplanationPage:
    table = result.trust_table()
    return ExplanationPage(
        title=f"What {Path(result.model).name} looked at",
        images=[_story(image) for image in result.images],
        methods=[] if table is None else _methods(result, {row[0]: row for row in table.rows}),
        columns=() if table is None else table.columns,
        note=TRUST_NOTE,
        notes=(
            *result.notes,
            *(f"{name} could not be read: {reason}" for name, reason in result.failures),
            *_legend(result.methods),
        ),
    )


def _legend(methods: Sequence[Method]) -> Iterator[str]:
    """Yield how to read the colours of maps, by the methods that made them."""
    signed = [method for method in methods if is_signed(method)]
    if len(signed) < len(methods):
        yield "The brighter, from violet to yellow, the more a place counts."
    if signed:
        yield f"With {' and '.join(signed)}, orange speaks for the class and blue against it."
    classless = [method for method in methods if not needs_class(method)]
    if classless:
        yield f"The map of {' and '.join(classless)} is the same for every class."


def _story(image: Explanation) -> ImageStory:
    panels = [Panel(picture=image.picture, lines=())]
    panels += [Panel(picture=image.overlay(heat), lines=_lines(heat)) for heat in image.maps]
    answer = ", ".join(f"{label} {percent(probability)}" for label, probability in image.top)
    return ImageStory(name=image.name, answer=answer, panels=panels)


def _lines(heat: HeatMap) -> tuple[str, ...]:
    lines = [f"{heat.label} {percent(heat.probability)}", heat.method]
    if heat.trust is not None:
        areas = heat.trust.areas
        lines.append(f"deletion {areas['deletion']:.3f} (random {areas['random_deletion']:.3f})")
        lines.append(f"insertion {areas['insertion']:.3f} (random {areas['random_insertion']:.3f})")
    if heat.error is not None:
        lines.append(f"error of the sum {percent(heat.error)}")
    return tuple(lines)


def _methods(result: Explanations, rows: dict[str, tuple[str, ...]]) -> list[MethodStory]:
    """Return the mean curves of each method in the order of the table, and of random maps."""
    stories = []
    for method in result.methods:
        trusts = result.trusts(method)
        curves = {
            name: np.mean([getattr(trust, name) for trust in trusts], axis=0)
            for name in ("shares", "deletion", "insertion", "random_deletion", "random_insertion")
        }
        random = {name: curves.pop(f"random_{name}") for name in ("deletion", "insertion")}
        stories.append(MethodStory(name=method, row=rows[method], **curves))
    stories.sort(key=lambda story: list(rows).index(story.name))
    return [*stories, MethodStory(name=RANDOM, row=rows[RANDOM], shares=curves["shares"], baseline=True, **random)]
