"""Files that a list names more than once: each is one image, with one label, of one split.

A file in two rows would end up in training and validation when the list is split. Paths are compared by hashes of eight
bytes at a time, all at once, so that ten million of them take seconds; only those with a hash in common are compared.
"""

import os
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Int, UInt64

from vitrail.data.budget import Skipped, named
from vitrail.data.names import Names

Rows = Int[np.ndarray, "image"]
Repeated = Int[np.ndarray, "repeated"]
Mask = Bool[np.ndarray, "image"]
Hashes = UInt64[np.ndarray, "image"]

_AT_A_TIME = 2**20
_MASKS = np.array([(1 << 8 * count) - 1 for count in range(9)], np.uint64)
"""Keep the first N of eight bytes."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Checked:
    """The rows of a list that remain when each file is named once."""

    kept: Mask
    broken: tuple[Skipped, ...]
    """Files with two labels."""
    notes: tuple[str, ...]


def check_repeats(paths: Names, labels: Rows, splits: Rows, where: str) -> Checked:
    """Leave out rows that repeat another; a file with two labels is broken, one in two splits is mentioned."""
    kept = np.ones(len(paths), bool)
    broken: list[Skipped] = []
    again: list[Skipped] = []
    shared: dict[bytes, None] = {}
    first: dict[bytes, tuple[int, set[int]]] = {}
    for row in repeated(paths).tolist():
        path, label, split = paths[row], int(labels[row]), int(splits[row])
        first_label, parts = first.setdefault(path, (label, set()))
        if label != first_label:
            broken.append((os.fsdecode(path), "it is listed more than once, with different labels"))
            kept[row] = False
        elif split in parts:
            again.append((os.fsdecode(path), "listed before"))
            kept[row] = False
        elif parts:
            shared[path] = None
        parts.add(split)
    notes = [f"{len(again)} rows of {where} list a file again and were left out: {named(again)}."] if again else []
    if shared:
        names = named([(os.fsdecode(path), "the same file") for path in shared])
        notes.append(
            f"{len(shared)} files of {where} are in more than one split, which makes scores too good: {names}."
        )
    return Checked(kept=kept, broken=tuple(broken), notes=tuple(notes))


def repeated(paths: Names) -> Repeated:
    """Return every row whose path another row has too."""
    hashes = _hashes(paths)
    ordered = np.sort(hashes)
    twice = ordered[1:][ordered[1:] == ordered[:-1]]
    if not len(twice):
        return np.empty(0, np.int64)
    candidates = np.flatnonzero(np.isin(hashes, twice))
    count: dict[bytes, int] = {}
    for row in candidates.tolist():
        count[paths[row]] = count.get(paths[row], 0) + 1
    return candidates[[count[paths[row]] > 1 for row in candidates.tolist()]]


def _hashes(paths: Names) -> Hashes:
    """Hash every path; a path has no zero byte, so that zeros may pad it."""
    hashes = np.zeros(len(paths), np.uint64)
    for start in range(0, len(paths), _AT_A_TIME):
        offsets = np.asarray(paths.offsets[start : start + _AT_A_TIME + 1])
        begins, lengths = offsets[:-1] - offsets[0], np.diff(offsets)
        piece = np.append(paths.blob[offsets[0] : offsets[-1]], np.zeros(8, np.uint8))
        window = np.ndarray(len(piece) - 7, "<u8", piece, strides=(1,))  # eight bytes from each place on
        here = hashes[start : start + _AT_A_TIME]
        for at in range(0, int(lengths.max(initial=0)), 8):
            longer = np.flatnonzero(lengths > at)
            words = window[begins[longer] + at] & _MASKS[np.minimum(lengths[longer] - at, 8)]
            mixed = here[longer]
            here[longer] = (mixed ^ (mixed >> np.uint64(29))) * np.uint64(0x9E3779B97F4A7C15) + words
    return hashes
