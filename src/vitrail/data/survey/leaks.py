"""The duplicates and leaks of a scan, and the images to leave out of training for them.

A *leak* is an image that is also in a later split: a training image that is in the test, above all. The paper removes
those from the training data, and so does `left_out`. The order of splits is training, validation, test.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Int

from vitrail.data.dataset import UNLABELLED
from vitrail.data.survey.duplicates import NEAR_BITS, Twins, near_duplicates
from vitrail.data.survey.scan import Scan

Rows = tuple[int, ...]
Order = Int[np.ndarray, "split"]
Copies = Int[np.ndarray, "copy"]
Kind = Literal["exact", "near", "mirrored"]

_LAST = {"train": 0, "val": 2, "test": 3}


@dataclass(frozen=True, kw_only=True)
class Twin:
    """Two images that are the same picture."""

    row: int
    """The number of one of them: of two in the same split the first, else the one in the earlier split."""
    other: int
    """The number of the other."""
    kind: Kind
    """Same pixels; nearly the same; nearly the same and the other way round."""
    similarity: float
    """Correlation of their details, 1 for the same pixels."""


@dataclass(frozen=True, kw_only=True)
class Findings:
    """Everything that is there more than once."""

    leaks: tuple[Twin, ...]
    """Every image that is also in a later split, with the nearest one there."""
    exact: tuple[Rows, ...]
    """Groups of images of one split with the same pixels."""
    near: tuple[Twin, ...]
    """Pairs of one split: every image that has a near duplicate there, with its nearest."""
    conflicts: tuple[Rows, ...]
    """Groups of images, of any split, with the same pixels and different classes."""


def find(scan: Scan, *, bits: int | None = NEAR_BITS) -> Findings:
    """Find duplicates; near ones may differ in `bits` bits of their hash, and None skips them."""
    groups = _same_pixels(scan)
    exact, conflicts = [], []
    leaks: dict[int, Twin] = {}
    for rows in groups:
        classes = scan.targets[rows]
        if len(np.unique(classes[classes != UNLABELLED])) > 1:
            conflicts.append(tuple(rows.tolist()))
        for part in np.unique(scan.part[rows]):
            inside = rows[scan.part[rows] == part]
            if len(inside) > 1:
                exact.append(tuple(inside.tolist()))
        order = _order(scan)[scan.part[rows]]
        last = rows[order == order.max()][0]
        for row in rows[order < order.max()]:
            leaks[int(row)] = Twin(row=int(row), other=int(last), kind="exact", similarity=1.0)
    near: tuple[Twin, ...] = ()
    if bits is not None:
        twins = near_duplicates(scan.prints, scan.part, len(scan.splits), bits)
        for row, part in np.argwhere(twins.partner >= 0).tolist():
            if _order(scan)[part] > _order(scan)[scan.part[row]]:
                twin = _twin(twins, row, part)
                if row not in leaks or leaks[row].similarity < twin.similarity:
                    leaks[row] = twin
        near = _inside(scan, twins)
    return Findings(
        leaks=tuple(leaks[row] for row in sorted(leaks)),
        exact=tuple(sorted(exact)),
        near=near,
        conflicts=tuple(sorted(conflicts)),
    )


def left_out(scan: Scan, findings: Findings) -> dict[int, str]:
    """Return the images that a clean data set does not have, each with the reason.

    Those are, in this order: images that cannot be read; images that are also in a later split; in training, those
    with the same pixels as an image of another class, since the right class is unknown; and in training, every copy
    but the first. A test split loses only images that cannot be read.
    """
    reasons = {row: f"it cannot be read: {error}" for row, error in scan.errors.items()}
    for leak in findings.leaks:
        same = {"exact": "the same pixels as", "near": "nearly the same as", "mirrored": "nearly the mirror image of"}
        reasons.setdefault(leak.row, f"{same[leak.kind]} {scan.name(leak.other)} in {scan.split(leak.other)}")
    for rows in findings.exact:
        if scan.split(rows[0]) != "train":
            continue
        classes = {scan.label(row) for row in rows} - {None}
        if len(classes) > 1:
            for row in rows:
                reasons.setdefault(row, f"the same pixels are in {len(classes)} classes")
        for row in rows[1:]:
            reasons.setdefault(row, f"the same pixels as {scan.name(rows[0])}, which stays")
    return dict(sorted(reasons.items()))


def _order(scan: Scan) -> Order:
    """Return for each split how late it is; one of another name counts between training and validation."""
    return np.array([_LAST.get(name, 1) for name in scan.splits])


def _same_pixels(scan: Scan) -> list[Copies]:
    """List the groups of images with the same digest, by their first image."""
    rows = np.flatnonzero(scan.readable)
    order = rows[np.argsort(scan.prints.digests[rows], kind="stable")]
    digests = scan.prints.digests[order]
    cuts = np.flatnonzero(digests[1:] != digests[:-1]) + 1
    starts, stops = np.concatenate([[0], cuts]), np.concatenate([cuts, [len(order)]])
    several = stops - starts > 1
    groups = [order[start:stop] for start, stop in zip(starts[several], stops[several], strict=True)]
    return sorted(groups, key=lambda group: int(group[0]))


def _twin(twins: Twins, row: int, part: int) -> Twin:
    return Twin(
        row=row,
        other=int(twins.partner[row, part]),
        kind="mirrored" if twins.mirrored[row, part] else "near",
        similarity=round(float(twins.similarity[row, part]), 4),
    )


def _inside(scan: Scan, twins: Twins) -> tuple[Twin, ...]:
    """List the pairs within a split, each once; copies of the same pixels count as one image."""
    pairs: dict[tuple[int, int], Twin] = {}
    rows = np.flatnonzero(twins.partner[np.arange(len(scan.part)), scan.part] >= 0)
    _, first = np.unique(
        np.stack([scan.prints.digests[rows], scan.part[rows].astype(np.uint64)]), axis=1, return_index=True
    )
    for row in np.sort(rows[first]).tolist():
        twin = _twin(twins, row, int(scan.part[row]))
        pair = (min(twin.row, twin.other), max(twin.row, twin.other))
        pairs[pair] = Twin(row=pair[0], other=pair[1], kind=twin.kind, similarity=twin.similarity)
    return tuple(pairs[pair] for pair in sorted(pairs))
