"""Names and labels of any number of images as a few flat arrays.

Ten million paths as Python strings take more than a gigabyte, and every worker that touches one copies its page
(reference counts are written). Here a million names are one block of bytes and one array of offsets: compact, shared
by all workers as they are, and written to a file that is mapped into memory when it is opened again.
"""

import json
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Int, UInt8
from torch import Tensor

from vitrail.base.container import open_container, write_container
from vitrail.base.errors import CheckpointError, InputError
from vitrail.base.files import atomic_write
from vitrail.base.reading import open_regular
from vitrail.base.tensors import from_tensors

_MARK, _VERSION = "vitrail.index", "2"
_FIRST = f'{{"__metadata__":{{"{_MARK}":"{_VERSION}"'.encode()
"""How the header of an index begins."""
_DESCRIBED = "described"
"""The array that holds the description: a list of a million broken files is more than a header may be."""
_MOST_TEXT = 64 << 20
Bytes = UInt8[np.ndarray, "byte"]
Offsets = Int[np.ndarray, "place"]
Rows = Int[np.ndarray, "image"]

_KINDS = {torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64}


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


def write_arrays(path: Path, described: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
    """Write flat arrays and a JSON description of them to one file of our container format, with its digest."""
    text = np.frombuffer(bytearray(json.dumps(dict(described)).encode()), np.uint8)
    tensors = {name: _tensor(values) for name, values in {**arrays, _DESCRIBED: text}.items()}
    with atomic_write(path) as file:
        write_container(file, from_tensors(tensors, str(path)), {_MARK: _VERSION}, digest=True)


def _tensor(values: np.ndarray) -> Tensor:
    """Return the numbers as torch takes them: in one piece, in this machine's order of bytes, and writable."""
    native = np.ascontiguousarray(values, values.dtype.newbyteorder("="))
    return torch.from_numpy(native if native.flags.writeable else native.copy())


def is_index(path: Path) -> bool:
    """Report whether a file is an index, by its first bytes."""
    with open_regular(path) as file:
        return file.read(8 + len(_FIRST))[8:] == _FIRST


def map_arrays(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Map the arrays of an index file into memory, where all processes share them, and check their digest."""
    if not is_index(path):
        raise InputError(f"{path} is not an index of images; make one with vitrail.data.save_index.")
    try:
        container = open_container(path)
    except CheckpointError:
        raise _damaged(path, "its header does not describe its arrays") from None
    if any(len(shape) != 1 or dtype not in _KINDS for (shape, dtype), _ in container.places.values()):
        raise _damaged(path, "it contains something other than rows of whole numbers")
    if container.recorded_digest() != container.computed_digest():
        raise _damaged(path, "its digest is another")
    arrays = {}
    for name in container.places:
        container.release(name)  # hashing has touched every page; from now on only what is used is in memory
        arrays[name] = container.tensor(name).numpy()
        arrays[name].flags.writeable = False
    try:
        described = json.loads(arrays.pop(_DESCRIBED)[:_MOST_TEXT].tobytes())  # a longer text is cut and not JSON
    except (KeyError, ValueError, RecursionError):
        described = None
    if not isinstance(described, dict):
        raise _damaged(path, "its description cannot be read")
    return described, arrays


def _damaged(path: Path, reason: str) -> InputError:
    return InputError(f"{path} is damaged: {reason}; make the index again.")
