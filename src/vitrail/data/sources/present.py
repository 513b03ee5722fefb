"""Which files of a long list are there.

Up to `EVERY` files all are checked, by listing each folder once. Beyond that, `SAMPLE` of them spread over the
list are; only if one of those is missing are all checked. Other missing files are found by `vitrail data`,
or by the reader, which names it.
"""

import os
from pathlib import Path

import numpy as np
from jaxtyping import Int

from vitrail.data.budget import Skipped
from vitrail.data.names import Names
from vitrail.data.sources.files import is_inside, real_folders

Rows = Int[np.ndarray, "kept"]

EVERY = 200_000
SAMPLE = 10_000
_MOST_LISTED = 2_000_000
"""Names of files that are remembered at a time."""


def missing_files(root: Path, paths: Names) -> tuple[Rows, list[Skipped]]:
    """Return the rows whose files are there, and the names of the others."""
    rows = np.arange(len(paths))
    if len(rows) > EVERY:
        spread = np.unique(np.linspace(0, len(rows) - 1, SAMPLE).astype(np.int64))
        if all(os.path.exists(os.path.join(os.fsencode(root), paths[int(row)])) for row in spread):  # noqa: PTH110, PTH118
            return rows, []
    listed: dict[bytes, frozenset[bytes]] = {}
    remembered = 0
    inside = real_folders(root)
    there = np.ones(len(rows), bool)
    missing: list[Skipped] = []
    for row in range(len(rows)):
        folder, _, name = paths[row].rpartition(b"/")
        if folder not in listed:
            if remembered > _MOST_LISTED:
                listed.clear()
                remembered = 0
            listed[folder] = _list(os.path.join(os.fsencode(root), folder), inside)  # noqa: PTH118
            remembered += len(listed[folder])
        if name not in listed[folder]:
            there[row] = False
            missing.append((str(root / paths.text(row)), "there is no such file"))
    return np.flatnonzero(there), missing


def _list(folder: bytes, inside: tuple[bytes, ...]) -> frozenset[bytes]:
    """List a folder; one that does not exist, or is outside, has no files."""
    try:
        return frozenset(os.listdir(folder)) if is_inside(os.path.realpath(folder), inside) else frozenset()  # noqa: PTH208
    except OSError:
        return frozenset()
