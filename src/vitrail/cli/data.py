"""Look at data before training on it: classes, splits, sizes, broken files, duplicates, and leaks into the test.

DATA is a folder of class folders, a CSV or JSON-lines file, tar shards, arrays, a published data set as it was
published, or `sample`. Every image is read to its end once. Images are exact duplicates when their pixels are the same,
and near duplicates when they were only saved again, resized, mirrored, or made a little brighter.

Exit code 0 says that it was surveyed, 1 that more is broken than --skip-broken allows.

Example: vitrail data photos/ --sheet photos.html

Example: vitrail data photos/ --clean photos/clean.csv
"""

import os
import re
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from vitrail.base.errors import ConfigError, InputError
from vitrail.cli.progress import progress
from vitrail.cli.report import Positional, Switch, flag, parse_size, print_json
from vitrail.cli.survey_tables import show
from vitrail.data.augment.apply import NO_AUGMENTATION, Augmentation
from vitrail.data.budget import Budget
from vitrail.data.catalog import open as open_data
from vitrail.data.catalog import open_splits
from vitrail.data.dataset import Dataset
from vitrail.data.sources.files import Files
from vitrail.data.sources.manifest import write_manifest
from vitrail.data.survey.duplicates import MOST_BITS, NEAR_BITS
from vitrail.data.survey.leaks import Findings, find, left_out
from vitrail.data.survey.scan import Survey, survey
from vitrail.data.survey.sheet import make_sheet
from vitrail.data.survey.summary import summarise
from vitrail.report.sheet_page import write_sheet
from vitrail.verbs.output import output_path

AUGMENTATIONS = {
    "paper": Augmentation(),
    "strong": Augmentation(layers=2, magnitude=10.0, erase=0.25),
    "none": NO_AUGMENTATION,
}
LARGEST = 224  # pixels of augmented pictures, unless told otherwise
MOST_PIXELS = 4096  # and even then


@dataclass(frozen=True, kw_only=True)
class Arguments:
    """Flags of `vitrail data`."""

    data: Annotated[str, Positional, flag("DATA")]
    """A folder, a file, shards such as 'data-{000000..000099}.tar', or `sample`."""
    split: Annotated[str | None, flag("NAME", "all of them")] = None
    """Look at one split only: train, val, test, or another name that the data has."""
    val_fraction: float = 0.1
    """The share of one pile, from 0 to 1, that becomes `val`."""
    seed: int = 0
    """Decides which images of one pile become `val`, and what augmentation shows."""
    root: Annotated[str | None, flag("FOLDER", "the folder of the file")] = None
    """Where the paths of a CSV or JSON-lines file begin."""
    near: Annotated[str, flag("BITS|off")] = str(NEAR_BITS)
    """Bits of 63, 0 to 11, in which the hashes of near duplicates may differ; `off` finds exact ones only."""
    skip_broken: Annotated[str, flag("N|PERCENT")] = "100%"
    """Exit with code 1 if more images than this are broken or missing, such as 5 or 1%."""
    sheet: Annotated[str | None, flag("OUT.html", "none")] = None
    """Write a page with images of the classes, what augmentation makes of them, and the leaks."""
    augment: Annotated[Literal["paper", "strong", "none"], flag("paper|strong|none")] = "paper"
    """With --sheet: crop and flip; these with RandAugment and erasing; or nothing but resizing."""
    image_size: Annotated[
        str | None, flag("PIXELS|HxW", "that of all images if it is one and at most 224, else 224")
    ] = None
    """With --sheet: height and width of augmented images, in pixels."""
    clean: Annotated[str | None, flag("OUT.csv", "none")] = None
    """Write a list (path, label, split) of the images without the broken and leaked ones, to be opened as DATA."""
    json: Switch = False
    """Write JSON to stdout."""


def run(arguments: Arguments) -> int:
    """Open, look, and report; then draw and write what was asked for."""
    bits, budget = _bits(arguments.near), Budget.parse(arguments.skip_broken)
    image_size = None if arguments.image_size is None else parse_size(arguments.image_size)
    if image_size and max(image_size) > MOST_PIXELS:
        raise ConfigError(f"--image-size is {arguments.image_size}, but at most {MOST_PIXELS} pixels are drawn.")
    sheet, clean = output_path(arguments.sheet, ".html"), output_path(arguments.clean, ".csv")
    splits = _open(arguments)
    files = all(isinstance(dataset.pictures, Files) for dataset in splits.values())
    if clean and not files:
        raise InputError(
            f"--clean lists image files, but the images of {arguments.data} are not files of their own; "
            "--json tells which are broken or leaked."
        )
    surveyed = survey(splits, near=bits is not None, progress=progress)
    findings = find(surveyed, bits=bits)
    report = summarise(surveyed, findings) | {"files": files, "near_bits": bits, "sheet": None, "clean": None}
    if sheet:
        size = image_size or _own_size(report)
        augmentation = AUGMENTATIONS[arguments.augment]
        shown = make_sheet(surveyed, findings, augmentation=augmentation, image_size=size, seed=arguments.seed)
        write_sheet(shown, sheet)
        report["sheet"] = str(sheet)
    if clean:
        report["clean"] = _clean(surveyed, findings, clean)
    if arguments.json:
        print_json(report)
    else:
        show(report)
    return _within(budget, report)


def _bits(text: str) -> int | None:
    if text == "off":
        return None
    if text not in map(str, range(MOST_BITS + 1)):
        raise ConfigError(f"--near is {text!r}, but must be a number of bits from 0 to {MOST_BITS}, or off.")
    return int(text)


def _open(arguments: Arguments) -> dict[str, Dataset]:
    """Open the splits; what training would refuse, such as classes that only the test has, is shown instead."""
    options: dict[str, Any] = {
        "val_fraction": arguments.val_fraction,
        "seed": arguments.seed,
        "skip_broken": "100%",
        "root": arguments.root,
    }

    def opened(labels: tuple[str, ...] | None) -> dict[str, Dataset]:
        if arguments.split is None:
            return open_splits(arguments.data, labels=labels, **options)
        dataset = open_data(arguments.data, split=arguments.split, labels=labels, **options)
        return {dataset.split or arguments.split: dataset}

    try:
        return opened(None)
    except InputError as error:
        problem = str(error)
    everything = open_data(arguments.data, **options)
    try:
        splits = opened(everything.labels)
    except InputError:
        if arguments.split is not None:
            raise
        splits = {"all": everything}
    return {name: replace(dataset, notes=(*dataset.notes, problem)) for name, dataset in splits.items()}


def _own_size(report: dict[str, Any]) -> tuple[int, int]:
    """Return the size that all images have, if it is small, or a square."""
    sides = [report["height"], report["width"]]
    if all(side and side["min"] == side["max"] <= LARGEST for side in sides):
        return int(sides[0]["max"]), int(sides[1]["max"])
    return LARGEST, LARGEST


def _clean(surveyed: Survey, findings: Findings, path: Path) -> dict[str, Any]:
    """Write the manifest, and return what is in it and what is not."""
    dropped = left_out(surveyed, findings)
    rows = []
    for row in range(len(surveyed.part)):
        if row not in dropped:
            dataset = surveyed.splits[surveyed.split(row)]
            pictures = dataset.pictures
            assert isinstance(pictures, Files)  # noqa: S101  (refused before the survey)
            index = int(row - surveyed.starts[surveyed.part[row]])
            file = pictures.path(int(dataset.rows[index]))
            if re.search("[\ud800-\udfff]", str(file)):
                dropped[row] = "its name is no UTF-8, which a list has to be; rename it"
                continue
            rows.append((file, surveyed.label(row), dataset.split))
    if not rows:
        raise InputError(f"nothing would be left in {path}: all {len(dropped)} images are broken or leaked.")
    numbered = surveyed.labels == tuple(map(str, range(len(surveyed.labels))))
    write_manifest(path, rows, numbers=numbered)
    files = [os.path.abspath(file) for file, _, _ in rows]  # noqa: PTH100
    inside = os.path.commonpath([*files, os.path.abspath(path.parent)]) == os.path.abspath(path.parent)  # noqa: PTH100
    return {
        "file": str(path),
        "root": None if inside else os.path.commonpath([os.path.dirname(file) for file in files]),  # noqa: PTH120
        "images": len(rows),
        "left_out": [
            {"split": surveyed.split(row), "name": surveyed.name(row), "reason": reason}
            for row, reason in dropped.items()
        ],
    }


def _within(budget: Budget, report: dict[str, Any]) -> int:
    """Return the exit code: 1, with a sentence, when more is broken than allowed."""
    broken = [(found["name"], found["reason"]) for found in (*report["skipped"], *report["unreadable"])]
    try:
        budget.spend(broken, report["images"] + len(report["skipped"]), where=report["data"])
    except InputError as error:
        print(f"vitrail: {error}", file=sys.stderr)
        return 1
    return 0
