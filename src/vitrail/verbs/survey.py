"""Look at data before training on it: classes, sizes, broken files, duplicates, leaks."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from vitrail.base.errors import ConfigError, InputError
from vitrail.base.notes import Note, logged
from vitrail.base.outputs import check_output
from vitrail.base.progress import Progress, silent
from vitrail.base.table import Table, Tabular
from vitrail.data.augment.apply import NO_AUGMENTATION, Augmentation
from vitrail.data.budget import Budget
from vitrail.data.catalog import open as open_data
from vitrail.data.catalog import open_splits
from vitrail.data.dataset import Dataset
from vitrail.data.survey.duplicates import MOST_BITS, NEAR_BITS
from vitrail.data.survey.leaks import Findings, find
from vitrail.data.survey.scan import Scan
from vitrail.data.survey.scan import scan as scan_splits
from vitrail.data.survey.sheet import make_sheet
from vitrail.data.survey.summary import Problem, Summary, summarise
from vitrail.model.build import as_size
from vitrail.model.patches import Size, size_text
from vitrail.report.sheet_page import SHEET, write_sheet
from vitrail.verbs.clean import LIST, CleanList, all_files, check_files, write_clean
from vitrail.verbs.survey_tables import SurveyReport, survey_tables

if TYPE_CHECKING:  # they load engines, which only a survey by features needs
    from vitrail.verbs.impressions import Impressions
    from vitrail.verbs.network import ModelLike

AugmentationName = Literal["paper", "strong", "none"]
AUGMENTATIONS: dict[str, Augmentation] = {
    "paper": Augmentation(),
    "strong": Augmentation(layers=2, magnitude=10.0, erase=0.25),
    "none": NO_AUGMENTATION,
}
LARGEST = 224  # pixels of augmented pictures, without a size of their own
MOST_PIXELS = 4096  # and even then


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class Survey(Tabular):
    """The contents of data, and its problems."""

    scan: Scan
    """Every image of every split, as arrays."""
    findings: Findings
    """Images that occur more than once."""
    near: int | None
    """Bits in which the hashes of near duplicates may differ; None where they were not searched."""
    seed: int
    """Decides the augmented samples, and the folds in which labels are judged."""
    impressions: "Impressions | None" = None
    """What the features of a model say, where one was given."""
    clean_list: CleanList | None = None
    """The clean list that was written with the survey."""
    sheet_file: Path | None = None
    """The page that was written with the survey."""

    @property
    def images(self) -> int:
        """How many images there are, broken ones included."""
        return len(self.scan.part)

    @property
    def classes(self) -> tuple[str, ...]:
        """The class names."""
        return self.scan.labels

    @property
    def broken(self) -> tuple[tuple[str, str], ...]:
        """The images that are missing or cannot be read, each with the reason."""
        images: list[Problem] = [*self._summary["skipped"], *self._summary["unreadable"]]
        return tuple((image["name"], image["reason"]) for image in images)

    @property
    def leaks(self) -> tuple[tuple[str, str], ...]:
        """The images that are also in a later split, each with the image there."""
        return tuple((self.scan.name(twin.row), self.scan.name(twin.other)) for twin in self.findings.leaks)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values for JSON."""
        return dict(self._report())

    def _report(self) -> SurveyReport:
        return {
            **self._summary,
            "files": all_files(self.scan.splits),
            "near_bits": self.near,
            "features": None if self.impressions is None else self.impressions.report(self.scan),
            "sheet": None if self.sheet_file is None else str(self.sheet_file),
            "clean": None if self.clean_list is None else self.clean_list.to_dict(),
        }

    def tables(self) -> list[Table]:
        """Return tables of classes and images, and a list for everything that is wrong."""
        return survey_tables(self._report())

    def check_broken(self, allowed: Budget) -> None:
        """Refuse the data where more images are broken or missing than allowed."""
        total = self.images + len(self._summary["skipped"])
        allowed.spend(self.broken, total, where=self.scan.where)

    def clean(self, path: str | Path, *, force: bool = False) -> CleanList:
        """Write a CSV (path, label, split) of the images without the broken and leaked ones, to be opened as data.

        The data itself is never replaced, and a file of another kind only with `force`.
        """
        file = check_output(path, LIST, inputs=(self.scan.where,), force=force, setting="clean")
        return write_clean(self.scan, self.findings, file)

    def sheet(
        self,
        path: str | Path,
        *,
        augment: AugmentationName = "paper",
        image_size: int | Size | None = None,
        force: bool = False,
    ) -> Path:
        """Write a page with the classes, augmented samples, the leaks, and what features say, where there are any.

        "paper" is crop and flip, "strong" these with RandAugment and erasing, "none" nothing but resizing. Without an
        `image_size`, augmented images have that of all images if it is one and at most 224 px, else 224 px. A file of
        another kind is replaced only with `force`.
        """
        file = check_output(path, SHEET, inputs=(self.scan.where,), force=force, setting="sheet")
        size = _check_size(image_size) or self._own_size()
        augmentation = AUGMENTATIONS[augment]
        sheet = make_sheet(self.scan, self.findings, augmentation=augmentation, image_size=size, seed=self.seed)
        write_sheet(sheet, file, () if self.impressions is None else self.impressions.sections(self.scan))
        return file

    @cached_property
    def _summary(self) -> Summary:
        return summarise(self.scan, self.findings)

    def _own_size(self) -> Size:
        """Return the size that all images have, if it is small, or a square."""
        sides = [values[self.scan.readable] for values in (self.scan.heights, self.scan.widths)]
        if all(len(side) and side.min() == side.max() <= LARGEST for side in sides):
            return int(sides[0][0]), int(sides[1][0])
        return LARGEST, LARGEST


def survey(
    data: str | os.PathLike[str] | Dataset,
    *,
    split: str | None = None,
    val_fraction: float = 0.1,
    seed: int = 0,
    root: str | os.PathLike[str] | None = None,
    near: int | None = NEAR_BITS,
    features: "ModelLike | None" = None,
    sheet: str | Path | None = None,
    augment: AugmentationName = "paper",
    image_size: int | Size | None = None,
    clean: str | Path | None = None,
    force: bool = False,
    progress: Progress = silent,
    note: Note = logged,
) -> Survey:
    """Read every image of some data to its end, and report classes, splits, sizes, broken files, duplicates and leaks.

    `data` is anything that `vitrail.data.open` opens, or its result; `split` takes one split only. One pile of
    images is split by `val_fraction` and `seed`. Hashes of near duplicates may differ in `near` bits of 63, from 0 to
    11; None finds exact ones only. `features` is a model, such as "backbone", whose features show labels that they
    contradict, and on the page a map of the images. `sheet` and `clean` write what `Survey.sheet` and `Survey.clean`
    write, with `force` also over a file of another kind, and are refused before the work if they cannot be.

    >>> survey = vitrail.survey("photos/")
    >>> survey.images, survey.classes, survey.broken
    (8, ('ant', 'bee'), ())
    >>> survey.clean("photos/clean.csv").images
    8
    """
    if near is not None and near not in range(MOST_BITS + 1):
        raise ConfigError(f"near is {near!r}, but must be a number of bits from 0 to {MOST_BITS}, or None.")
    if augment not in AUGMENTATIONS:
        raise ConfigError(f"augment is {augment!r}, but must be one of {', '.join(AUGMENTATIONS)}.")
    size = _check_size(image_size)
    for name, file, kind in (("sheet", sheet, SHEET), ("clean", clean, LIST)):
        if file is not None:
            check_output(file, kind, inputs=(data, features), force=force, setting=name)
    splits = _open(data, split, {"val_fraction": val_fraction, "seed": seed, "skip_broken": "100%", "root": root})
    if clean is not None:
        check_files(splits)
    with _opened(features, note) as judge:  # a file that is not a model is refused before the images are read
        scan = scan_splits(splits, near=near is not None, progress=progress)
        result = Survey(scan=scan, findings=find(scan, bits=near), near=near, seed=seed)
        if judge is not None:
            result = replace(result, impressions=judge(scan, seed=seed, progress=progress, note=note))
    if sheet is not None:
        result = replace(result, sheet_file=result.sheet(sheet, augment=augment, image_size=size, force=force))
    return result if clean is None else replace(result, clean_list=result.clean(clean, force=force))


@contextmanager
def _opened(features: "ModelLike | None", note: Note) -> "Iterator[Callable[..., Impressions] | None]":
    """Open the model whose features judge labels, if there is one."""
    if features is None:
        yield None
        return
    from vitrail.verbs.impressions import gather
    from vitrail.verbs.network import FileSettings, open_network

    with open_network(features, file=FileSettings(), threads=None, note=note) as (network, ranks):
        yield partial(gather, network, ranks)


def _open(data: str | os.PathLike[str] | Dataset, split: str | None, options: dict[str, Any]) -> dict[str, Dataset]:
    """Open the splits; a problem that training would refuse, such as classes only in the test split, becomes a note."""
    if isinstance(data, Dataset):
        return {data.split or "all": data}

    def opened(labels: tuple[str, ...] | None) -> dict[str, Dataset]:
        if split is None:
            return open_splits(data, labels=labels, **options)
        dataset = open_data(data, split=split, labels=labels, **options)
        return {dataset.split or split: dataset}

    try:
        return opened(None)
    except InputError as error:
        problem = str(error)
    everything = open_data(data, **options)
    try:
        splits = opened(everything.labels)
    except InputError:
        if split is not None:
            raise
        splits = {"all": everything}
    return {name: replace(dataset, notes=(*dataset.notes, problem)) for name, dataset in splits.items()}


def _check_size(image_size: int | Size | None) -> Size | None:
    if image_size is None:
        return None
    size = as_size(image_size)
    if max(size) > MOST_PIXELS:
        raise ConfigError(f"image_size is {size_text(size)}, but at most {MOST_PIXELS} pixels are drawn.")
    return size
