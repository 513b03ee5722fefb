"""Names of any number of images as two flat arrays.

Ten million paths as Python strings take more than a gigabyte, and every worker that touches one copies its page
(reference counts are written). Here a million names are one block of bytes and one array of offsets: compact, and
shared by all workers as they are.
"""

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Int, UInt8

Bytes = UInt8[np.ndarray, "byte"]
Offsets = Int[np.ndarray, "place"]
Rows = Int[np.ndarray, "image"]


@dataclass(frozen=True, eq=False)
class Names(Sequence[bytes]):
    """Byte strings, one after the other, without an object for each."""

    blob: Bytes
    offsets: Offsets
    """Where each name begins, and at last where the last one ends."""

    def __len__(self) -> int:
        """Count the names."""
        return len(self.offsets) - 1

    def __getitem__(self, row: Any) -> Any:
        """Return one name."""
        if not 0 <= row < len(self):
            raise IndexError(f"row {row} of {len(self)} names")
        return self.blob[self.offsets[row] : self.offsets[row + 1]].tobytes()

    def text(self, row: int) -> str:
        """Return one name as text; bytes that are not UTF-8 are escaped."""
        return str(self[row].decode(errors="backslashreplace"))

    def take(self, rows: Rows) -> "Names":
        """Return some of the names, in the order given."""
        starts, ends = self.offsets[rows], self.offsets[rows + 1]
        offsets = np.concatenate([[0], np.cumsum(ends - starts)]).astype(np.int64)
        source = np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], ends - starts)
        return Names(self.blob[source], offsets)


class NamesBuilder:
    """Collects names one by one."""

    def __init__(self) -> None:
        self._blob = bytearray()
        self._offsets = array("q", [0])

    def add(self, name: bytes) -> None:
        """Append one name."""
        self._blob += name
        self._offsets.append(len(self._blob))

    def __len__(self) -> int:
        """Count the names so far."""
        return len(self._offsets) - 1

    def build(self) -> Names:
        """Return what was collected, without copying it."""
        return Names(np.frombuffer(self._blob, np.uint8), np.frombuffer(self._offsets, np.int64))


def names_of(names: Iterable[bytes]) -> Names:
    """Collect names."""
    builder = NamesBuilder()
    for name in names:
        builder.add(name)
    return builder.build()
