"""Write a list of images without those that are broken or leaked."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

from vitrail.base.errors import InputError
from vitrail.base.outputs import Kind
from vitrail.base.rows import read_header
from vitrail.data.dataset import Dataset
from vitrail.data.sources.files import Files
from vitrail.data.sources.manifest import write_manifest
from vitrail.data.survey.leaks import Findings, left_out
from vitrail.data.survey.scan import Scan
from vitrail.data.survey.summary import SplitProblem

LIST = Kind(
    name="a list of images with the columns path, label and split",
    suffixes=(".csv",),
    holds=lambda path: read_header(path) in (["path", "label", "split"], ["path", "class_name", "split"]),
)


@dataclass(frozen=True, kw_only=True)
class LeftOut:
    """An image that a clean list does not have."""

    split: str
    """The split that it was in."""
    name: str
    """Its file."""
    reason: str
    """Why it is not listed."""


class CleanSummary(TypedDict):
    """A clean list as plain values."""

    file: str
    root: str | None
    images: int
    left_out: list[SplitProblem]


@dataclass(frozen=True, kw_only=True)
class CleanList:
    """A list (path, label, split) of images that was written, to be opened as data."""

    file: Path
    """The list."""
    root: str | None
    """The folder to give as `root` when opening it; None where the list is above its images."""
    images: int
    """How many images it lists."""
    left_out: tuple[LeftOut, ...]
    """The images left out, with the reason."""

    def to_dict(self) -> CleanSummary:
        """Return everything as plain values for JSON."""
        return {
            "file": str(self.file),
            "root": self.root,
            "images": self.images,
            "left_out": [{"split": one.split, "name": one.name, "reason": one.reason} for one in self.left_out],
        }


def check_files(splits: Mapping[str, Dataset]) -> None:
    """Refuse data whose images are not files of their own, which no list could name."""
    if not all_files(splits):
        where = next(iter(splits.values())).where
        raise InputError(
            f"`clean` lists image files, but the images of {where} are not files of their own; "
            "`to_dict()` has which are broken or leaked."
        )


def all_files(splits: Mapping[str, Dataset]) -> bool:
    """Return whether all images are files of their own."""
    return all(isinstance(dataset.pictures, Files) for dataset in splits.values())


def write_clean(scan: Scan, findings: Findings, path: Path) -> CleanList:
    """Write the images that are neither broken, nor leaked, nor copies in training, and return a summary."""
    check_files(scan.splits)
    reasons, rows = left_out(scan, findings), []
    for row in range(len(scan.part)):
        if row in reasons:
            continue
        dataset = scan.splits[scan.split(row)]
        pictures = dataset.pictures
        assert isinstance(pictures, Files)  # noqa: S101  (refused above)
        file = pictures.path(int(dataset.rows[int(row - scan.starts[scan.part[row]])]))
        if re.search("[\ud800-\udfff]", str(file)):
            reasons[row] = "its name is not UTF-8, which a list must be; rename it"
            continue
        rows.append((file, scan.label(row), dataset.split))
    if not rows:
        raise InputError(f"nothing would be left in {path}: all {len(reasons)} images are broken or leaked.")
    numbered = scan.labels == tuple(map(str, range(len(scan.labels))))
    write_manifest(path, rows, numbers=numbered)
    names = [(scan.split(row), scan.name(row), reason) for row, reason in reasons.items()]
    return CleanList(
        file=path,
        root=_root([file for file, _, _ in rows], path),
        images=len(rows),
        left_out=tuple(LeftOut(split=split, name=name, reason=reason) for split, name, reason in names),
    )


def _root(files: list[Path], path: Path) -> str | None:
    """Return the folder of all files, or None where the list is in it or above."""
    absolute = [os.path.abspath(file) for file in files]  # noqa: PTH100
    above = os.path.abspath(path.parent)  # noqa: PTH100
    if os.path.commonpath([*absolute, above]) == above:
        return None
    return os.path.commonpath([os.path.dirname(file) for file in absolute])  # noqa: PTH120
