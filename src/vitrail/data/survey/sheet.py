"""The content of a contact sheet: the classes, augmented samples, and pairs of the same picture."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from vitrail.base.seeds import key, keys, uniform
from vitrail.base.shapes import NewPixels, Pixels
from vitrail.data.augment.apply import augment
from vitrail.data.augment.settings import Augmentation
from vitrail.data.dataset import UNLABELLED
from vitrail.data.pixels.resize import resize
from vitrail.data.survey.leaks import Findings, Kind, Twin
from vitrail.data.survey.scan import Scan, short_name

MOST_CLASSES = 24
MOST_PAIRS = 20
EXAMPLES = 6
VERSIONS = 6
LARGEST = 256
"""Pixels of the longer side of a picture that is kept; the files may be photos of any size."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Picture:
    """One image with what is written beside it."""

    pixels: Pixels
    """The image, at most `LARGEST` pixels a side."""
    name: str
    """Its name within the data."""
    split: str
    """Where it is."""
    label: str | None
    """Its class, if it has one."""


@dataclass(frozen=True, kw_only=True, eq=False)
class SheetClass:
    """One class with some of its images."""

    label: str | None
    """Its name; None for images without a class."""
    counts: Mapping[str, int]
    """Its images in each split."""
    examples: Sequence[Picture]
    """Images at even distances."""
    versions: Sequence[Pixels]
    """The first of them as the first epochs of training see it."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Pair:
    """Two images that are the same picture."""

    first: Picture
    second: Picture
    kind: Kind
    similarity: float
    """Correlation of their details, 1 for the same pixels."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Pairs:
    """Pairs of one sort, as many as are shown."""

    title: str
    pairs: Sequence[Pair]
    total: int
    """How many there are."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Sheet:
    """Everything that a contact sheet shows."""

    where: str
    """The data."""
    split: str
    """The split of the examples."""
    classes: Sequence[SheetClass]
    """The classes that are shown."""
    total: int
    """How many classes there are; 0 without labels."""
    augmentation: str | None
    """The augmentation, in words."""
    image_size: tuple[int, int]
    """Height and width of what training sees, in pixels."""
    pairs: Sequence[Pairs]
    """The duplicates."""


def make_sheet(
    scan: Scan,
    findings: Findings,
    *,
    augmentation: Augmentation | None,
    image_size: tuple[int, int],
    seed: int = 0,
) -> Sheet:
    """Gather the most frequent classes and the first pairs.

    Examples come from the training split, or from the first one. The augmented versions are the same that training
    with this seed sees in its first six epochs.
    """
    part = list(scan.splits).index("train") if "train" in scan.splits else 0
    counts = np.bincount(scan.targets[scan.targets >= 0], minlength=len(scan.labels))
    targets = np.arange(len(counts)) if scan.labels else np.array([UNLABELLED])
    if len(targets) > MOST_CLASSES:
        targets = np.sort(np.argsort(-counts, kind="stable")[:MOST_CLASSES])
    classes = []
    for target in map(int, targets):
        rows = _examples(scan, part, target)
        versions = _versions(scan, rows[0], augmentation, image_size, seed) if augmentation and rows else []
        classes.append(
            SheetClass(
                label=None if target == UNLABELLED else scan.labels[target],
                counts={split: int((data.targets == target).sum()) for split, data in scan.splits.items()},
                examples=[_picture(scan, row) for row in rows],
                versions=versions,
            )
        )
    titles = {"Images that are also in a later split": findings.leaks, "Near duplicates within a split": findings.near}
    return Sheet(
        where=scan.where,
        split=list(scan.splits)[part],
        classes=classes,
        total=len(scan.labels),
        augmentation=describe(augmentation) if augmentation else None,
        image_size=image_size,
        pairs=[_pairs(scan, title, twins) for title, twins in titles.items() if twins],
    )


def describe(augmentation: Augmentation) -> str:
    """Describe in words what an augmentation does."""
    crop = {
        "inception": f"by a crop of {augmentation.area[0]:.0%} to {augmentation.area[1]:.0%} of the image",
        "pad": f"by shifting up to {augmentation.pad} pixels",
        "none": "without a crop",
    }
    steps = [crop[augmentation.crop]]
    steps += [f"mirroring {augmentation.flip:.0%} of the time"] * (augmentation.flip > 0)
    steps += ["changed colours"] * augmentation.jitters
    steps += [f"RandAugment with {augmentation.layers} operations of magnitude {augmentation.magnitude:g}"] * (
        augmentation.layers > 0
    )
    steps += [f"erasing a box {augmentation.erase:.0%} of the time"] * (augmentation.erase > 0)
    return ", ".join(steps)


def _examples(scan: Scan, part: int, target: int) -> list[int]:
    """Choose readable images of a class at even distances, from the given split or, if it has none, from all."""
    rows = np.flatnonzero((scan.targets == target) & scan.readable)
    rows = inside if len(inside := rows[scan.part[rows] == part]) else rows
    places = np.linspace(0, len(rows) - 1, min(EXAMPLES, len(rows))).round().astype(np.int64)
    return [int(row) for row in rows[places]]


def _versions(scan: Scan, row: int, augmentation: Augmentation, image_size: tuple[int, int], seed: int) -> list[Pixels]:
    """Augment an image as the first epochs of training do."""
    pixels = scan.image(row)
    epochs = np.arange(VERSIONS)
    index = np.full_like(epochs, row - scan.starts[scan.part[row]])
    draws = uniform(keys(key(seed, "augment"), epochs, index), augmentation.draws).tolist()
    return [_shrunk(augment(pixels, augmentation, image_size, draw)) for draw in draws]


def _pairs(scan: Scan, title: str, twins: Sequence[Twin]) -> Pairs:
    pairs = [
        Pair(
            first=_picture(scan, twin.row),
            second=_picture(scan, twin.other),
            kind=twin.kind,
            similarity=twin.similarity,
        )
        for twin in twins[:MOST_PAIRS]
    ]
    return Pairs(title=title, pairs=pairs, total=len(twins))


def _picture(scan: Scan, row: int) -> Picture:
    return Picture(
        pixels=_shrunk(scan.image(row)),
        name=short_name(scan.name(row), scan.where),
        split=scan.split(row),
        label=scan.label(row),
    )


def _shrunk(pixels: Pixels) -> NewPixels:
    """Return an image that is small enough to keep many of."""
    height, width = pixels.shape[1:]
    longer = max(height, width)
    if longer <= LARGEST:
        return pixels
    return resize(pixels, (max(1, round(height * LARGEST / longer)), max(1, round(width * LARGEST / longer))))
