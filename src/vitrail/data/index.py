"""Names and labels of any number of images as a few flat arrays.

Ten million paths as Python strings take more than a gigabyte, and every worker that touches one copies its page
(reference counts are written). Here a million names are one block of bytes and one array of offsets: compact, shared
by all workers as they are, and written to a file that is mapped into memory when it is opened again.
"""

import json
import struct
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int, UInt8

from vitrail.base.errors import InputError
from vitrail.base.files import atomic_write

_MAGIC = b"VITRAIL INDEX 1\n"
_ALIGN = 64
_MOST_HEADER = 64 << 20
Bytes = UInt8[np.ndarray, "byte"]
Offsets = Int[np.ndarray, "place"]
Rows = Int[np.ndarray, "image"]

_KINDS = ("|u1", "|i1", "<i2", "<i4", "<i8")


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
        """Return one name as a person reads it; bytes that are no UTF-8 are escaped."""
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

    def done(self) -> Names:
        """Return what was collected, without copying it."""
        return Names(np.frombuffer(self._blob, np.uint8), np.frombuffer(self._offsets, np.int64))


def names_of(names: Iterable[bytes]) -> Names:
    """Collect names."""
    builder = NamesBuilder()
    for name in names:
        builder.add(name)
    return builder.done()


def write_arrays(path: Path, described: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
    """Write flat arrays and a JSON description of them to one file: magic, header length, header, aligned arrays."""
    places, at = {}, 0
    for name, values in arrays.items():
        at += -at % _ALIGN
        places[name] = {"dtype": values.dtype.newbyteorder("<").str, "length": len(values), "at": at}
        at += values.nbytes
    header = json.dumps({"described": dict(described), "arrays": places}).encode()
    header += b" " * (-(len(_MAGIC) + 8 + len(header)) % _ALIGN)
    with atomic_write(path) as file:
        file.write(_MAGIC + struct.pack("<Q", len(header)) + header)
        at = 0
        for values in arrays.values():
            file.write(bytes(-at % _ALIGN))
            at += -at % _ALIGN + values.nbytes
            for part in _parts(values):
                file.write(part)


def _parts(values: np.ndarray) -> Iterator[bytes]:
    """Cut an array into pieces that are written one by one, little-endian."""
    for start in range(0, len(values), 1 << 22):
        part = values[start : start + (1 << 22)]
        yield part.astype(part.dtype.newbyteorder("<"), copy=False).tobytes()


def is_index(path: Path) -> bool:
    """Tell whether a file is an index, by its first bytes."""
    with path.open("rb") as file:
        return file.read(len(_MAGIC)) == _MAGIC


def map_arrays(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Map the arrays of an index file into memory; only what is touched is ever read."""
    size = path.stat().st_size
    with path.open("rb") as file:
        start = file.read(len(_MAGIC) + 8)
        if start[: len(_MAGIC)] != _MAGIC or len(start) < len(_MAGIC) + 8:
            raise InputError(f"{path} is no index of images; make one with vitrail.data.save_index.")
        length = struct.unpack("<Q", start[len(_MAGIC) :])[0]
        base = len(start) + length
        if length > _MOST_HEADER or base > size:
            raise InputError(f"{path} is damaged: its header claims {length} bytes; make the index again.")
        try:
            header = json.loads(file.read(length))
            described, places = dict(header["described"]), dict(header["arrays"])
            arrays = {name: _mapped(path, base, size, **place) for name, place in places.items()}
        except (ValueError, KeyError, TypeError, RecursionError):
            raise InputError(f"{path} is damaged: its header does not describe its arrays; make it again.") from None
    return described, arrays


def _mapped(path: Path, base: int, size: int, *, dtype: str, length: int, at: int) -> np.ndarray:
    """Map one array, if it lies inside the file."""
    if dtype not in _KINDS or not (isinstance(length, int) and isinstance(at, int)) or min(length, at) < 0:
        raise ValueError
    kind = np.dtype(dtype)
    if base + at + length * kind.itemsize > size:
        raise InputError(f"{path} is cut off: an array of it would end beyond the file; make the index again.")
    if length == 0:
        return np.empty(0, kind)
    return np.memmap(path, kind, "r", base + at, (length,))
