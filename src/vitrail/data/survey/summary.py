"""A survey as plain values: what `vitrail data` prints, and writes as JSON."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import TypedDict

import numpy as np
from jaxtyping import Int

from vitrail.data.dataset import UNLABELLED, Dataset
from vitrail.data.survey.leaks import Findings, Kind, Twin
from vitrail.data.survey.scan import Scan

Counts = Int[np.ndarray, "class"]
ImageEntry = TypedDict("ImageEntry", {"split": str, "name": str, "class": str | None})


class Problem(TypedDict):
    """A file, and why it is not among the images."""

    name: str
    reason: str


class SplitProblem(Problem):
    """The same of an image of a split."""

    split: str


class Unreadable(ImageEntry):
    """An image that cannot be read."""

    reason: str


class PairEntry(TypedDict):
    """Two images that are the same picture."""

    kind: Kind
    similarity: float
    image: ImageEntry
    other: ImageEntry


class Spread(TypedDict):
    """The range of a figure over images."""

    min: float
    median: float
    max: float


class Imbalance(TypedDict):
    """How unequal classes are."""

    ratio: float
    effective: float


class SplitSummary(TypedDict):
    """The images of a split."""

    images: int
    unreadable: int
    unlabelled: int
    counts: list[int]
    missing: list[str]
    imbalance: Imbalance | None


class Summary(TypedDict):
    """Everything about a scan and its findings."""

    data: str
    images: int
    classes: list[str]
    channels: int
    splits: dict[str, SplitSummary]
    formats: dict[str, int]
    modes: dict[str, int]
    width: Spread | None
    height: Spread | None
    aspect: Spread | None
    bytes: int
    notes: list[str]
    skipped: list[Problem]
    ignored: list[Problem]
    unreadable: list[Unreadable]
    leaks: list[PairEntry]
    exact: list[list[ImageEntry]]
    near: list[PairEntry]
    conflicts: list[list[ImageEntry]]


def summarise(scan: Scan, findings: Findings) -> Summary:
    """Return everything about a scan and its findings as plain values for JSON."""
    datasets = list(scan.splits.values())
    return {
        "data": scan.where,
        "images": len(scan.part),
        "classes": list(scan.labels),
        "channels": datasets[0].channels,
        "splits": {name: _split(scan, part, datasets[part]) for part, name in enumerate(scan.splits)},
        "formats": _counted(scan, 0),
        "modes": _counted(scan, 1),
        "width": spread(scan.widths[scan.readable]),
        "height": spread(scan.heights[scan.readable]),
        "aspect": spread(scan.widths[scan.readable] / np.maximum(scan.heights[scan.readable], 1)),
        "bytes": int(scan.bytes.sum()),
        "notes": list(dict.fromkeys(note for dataset in datasets for note in dataset.notes)),
        "skipped": _once(dataset.skipped for dataset in datasets),
        "ignored": _once(dataset.ignored for dataset in datasets),
        "unreadable": [{**image_entry(scan, row), "reason": error} for row, error in scan.errors.items()],
        "leaks": [_pair(scan, twin) for twin in findings.leaks],
        "exact": [[image_entry(scan, row) for row in rows] for rows in findings.exact],
        "near": [_pair(scan, twin) for twin in findings.near],
        "conflicts": [[image_entry(scan, row) for row in rows] for rows in findings.conflicts],
    }


def spread(values: np.ndarray) -> Spread | None:
    """Return the smallest, the middle and the largest value, or None without any."""
    if not len(values):
        return None
    low, middle, high = (round(float(value), 4) for value in (values.min(), np.median(values), values.max()))
    return {"min": low, "median": middle, "max": high}


def imbalance(counts: Counts) -> Imbalance | None:
    """Return how unequal the classes that occur are, or None without any.

    `ratio` is the largest class over the smallest; `effective` is the number of equal classes that would be as hard to
    guess, e to the power of the entropy of the class frequencies.
    """
    present = counts[counts > 0]
    if not len(present):
        return None
    share = present / present.sum()
    effective = math.exp(-float((share * np.log(share)).sum()))
    return {"ratio": round(float(present.max() / present.min()), 4), "effective": round(effective, 4)}


def _once(lists: Iterable[Sequence[tuple[str, str]]]) -> list[Problem]:
    """List what the splits of one source have in common once."""
    rows = dict.fromkeys(chain.from_iterable(lists))
    return [{"name": name, "reason": reason} for name, reason in rows]


def _split(scan: Scan, part: int, dataset: Dataset) -> SplitSummary:
    here = scan.part == part
    counts = dataset.counts
    return {
        "images": len(dataset),
        "unreadable": int((here & ~scan.readable).sum()),
        "unlabelled": int((dataset.targets == UNLABELLED).sum()),
        "counts": counts.tolist(),
        "missing": [dataset.labels[at] for at in np.flatnonzero(counts == 0)],
        "imbalance": imbalance(counts),
    }


def _counted(scan: Scan, which: int) -> dict[str, int]:
    """Count formats or modes, the most frequent first."""
    counts: Counter[str] = Counter()
    for kind, number in enumerate(np.bincount(scan.kind[scan.readable], minlength=len(scan.kinds))):
        counts[scan.kinds[kind][which]] += int(number)
    return dict(counts.most_common())


def image_entry(scan: Scan, row: int) -> ImageEntry:
    """Name an image, its split and its class."""
    return {"split": scan.split(row), "name": scan.name(row), "class": scan.label(row)}


def _pair(scan: Scan, twin: Twin) -> PairEntry:
    return {
        "kind": twin.kind,
        "similarity": twin.similarity,
        "image": image_entry(scan, twin.row),
        "other": image_entry(scan, twin.other),
    }
