"""A task of VTAB-1k as it is passed around: lists of images and labels beside a folder of images (Sec. 4.1).

    caltech101/train800val200.txt     images/train800val200/000001.jpg 17
    caltech101/test.txt               images/test/000001.jpg 0
    caltech101/train800.txt, val200.txt, images/...

The suffix `.txt` may be missing. Paths are relative to the folder; the label is a whole number from 0 on. The training
split is train800val200, the list or its two halves; the other split is test. Classes are those of both lists, since a
thousand images need not show every class.
"""

import os
from pathlib import Path

import numpy as np

from vitrail.base.errors import InputError
from vitrail.base.reading import read_bytes
from vitrail.data.names import NamesBuilder
from vitrail.data.sources.columns import problem_with
from vitrail.data.sources.files import Files, is_file_in, real_folders
from vitrail.data.sources.pile import MOST_CLASSES, Pile
from vitrail.data.sources.present import missing_files

WHOLE, HALVES, TEST = "train800val200", ("train800", "val200"), "test"


def is_vtab(folder: Path) -> bool:
    """Return whether a folder has a list of training images; the others are required when it is opened."""
    return any(_list_of(folder, name) for name in (WHOLE, HALVES[0]))


def open_vtab(folder: Path) -> Pile:
    """Read the lists."""
    whole = _list_of(folder, WHOLE)
    parts = [(0, whole)] if whole else [(0, _needed(folder, name)) for name in HALVES]
    parts.append((1, _needed(folder, TEST)))
    paths = NamesBuilder()
    targets: list[int] = []
    splits: list[int] = []
    for split, path in parts:
        before = len(targets)
        for image, label in _read(path):
            paths.add(image)
            targets.append(label)
            splits.append(split)
        if len(targets) == before:
            raise InputError(f"{path} lists no images.")
    names = paths.build()
    rows, missing = missing_files(folder, names)
    return Pile(
        pictures=Files(folder, names.take(rows), real_folders(folder)),
        targets=np.array(targets, np.int32)[rows],
        names=tuple(map(str, range(max(targets) + 1))),
        fixed=True,
        splits=np.array(splits, np.int8)[rows],
        split_names=("train", "test"),
        broken=tuple(missing),
    )


def _list_of(folder: Path, name: str) -> Path | None:
    """Return the list of a split, with or without its suffix; None when there is none."""
    return next((path for path in (folder / f"{name}.txt", folder / name) if is_file_in(folder, path)), None)


def _needed(folder: Path, name: str) -> Path:
    path = _list_of(folder, name)
    if path is None:
        raise InputError(
            f"{folder} has no {name}.txt; a VTAB-1k task needs {WHOLE}.txt (or {' and '.join(HALVES)}) and {TEST}.txt."
        )
    return path


def _read(path: Path) -> list[tuple[bytes, int]]:
    """Read `PATH LABEL` from every line."""
    rows = []
    for at, line in enumerate(read_bytes(path).splitlines(), start=1):
        if not line.strip():
            continue
        image, label = [b"", *line.rsplit(maxsplit=1)][-2:]
        if not image.strip() or not label.isdigit() or len(label) > 6 or int(label) >= MOST_CLASSES:
            text = line[:60].decode(errors="backslashreplace")
            raise InputError(f"line {at} of {path} is not `PATH LABEL` with a label from 0 on: {text!r}.")
        if problem := problem_with(os.fsdecode(image.strip())):
            raise InputError(f"line {at} of {path} cannot be used: {problem}.")
        rows.append((image.strip(), int(label)))
    return rows
