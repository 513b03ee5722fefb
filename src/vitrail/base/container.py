"""The safetensors container: a JSON header and one block of numbers, written in a stream and read by memory map.

Eight bytes give the length of the header; the header gives type, shape and place of every tensor, and text under
`__metadata__`. A file is checked before it is used: the header is small and plain, every tensor has exactly its own
bytes, and no byte is left over.
"""

import hashlib
import json
import math
import mmap
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from io import BufferedReader
from pathlib import Path
from typing import Any, BinaryIO

import torch
from torch import Tensor

from vitrail.base.digest import DIGEST, NO_DIGEST, own_digest
from vitrail.base.errors import CheckpointError
from vitrail.base.limits import HEADER_BYTES
from vitrail.base.memory import check_memory
from vitrail.base.reading import open_regular, parse_json
from vitrail.base.tensors import Spec, TensorSource

DTYPES = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "I64": torch.int64,
    "I32": torch.int32,
    "I16": torch.int16,
    "I8": torch.int8,
    "U8": torch.uint8,
    "BOOL": torch.bool,
}
_NAMES = {dtype: name for name, dtype in DTYPES.items()}

_ALIGNMENT = 64


@dataclass(frozen=True, kw_only=True)
class Container:
    """A safetensors file, mapped or in memory."""

    path: Path
    memory: mmap.mmap
    header: bytes
    start: int
    """Where the numbers begin."""
    places: dict[str, tuple[Spec, int]]
    """Shape and type of each tensor, and where in the file it begins."""
    metadata: dict[str, str]
    resident: bool = False
    """Whether the numbers are in memory of their own, and what is released is gone."""
    released: set[str] = field(default_factory=set)

    @property
    def source(self) -> TensorSource:
        """The tensors, as views of the mapped file."""
        specs = {name: spec for name, (spec, _) in self.places.items()}
        return TensorSource(
            origin=str(self.path), specs=specs, fetch=self.tensor, metadata=self.metadata, release=self.release
        )

    def tensor(self, name: str) -> Tensor:
        """Return a view of the file in memory; writing to it never changes the file."""
        assert not (self.resident and name in self.released), name  # noqa: S101 - it would be zeros
        (shape, dtype), begin = self.places[name]
        assert dtype is not None  # noqa: S101 - the header was checked
        count = math.prod(shape)
        if count == 0:
            return torch.empty(shape, dtype=dtype)
        if begin % dtype.itemsize:  # a header of odd length: the numbers must be moved before they can be used
            return torch.frombuffer(
                bytearray(self.memory[begin : begin + count * dtype.itemsize]), dtype=dtype
            ).reshape(shape)
        return torch.frombuffer(self.memory, dtype=dtype, count=count, offset=begin).reshape(shape)

    def release(self, name: str) -> None:
        """Drop the pages that hold nothing but this tensor; if they are mapped, the file is read again when needed."""
        self.released.add(name)
        (shape, dtype), begin = self.places[name]
        end = begin + math.prod(shape) * (dtype.itemsize if dtype else 0)
        first, last = -(-begin // mmap.PAGESIZE), end // mmap.PAGESIZE
        if last > first and hasattr(mmap, "MADV_DONTNEED"):
            self.memory.madvise(mmap.MADV_DONTNEED, first * mmap.PAGESIZE, (last - first) * mmap.PAGESIZE)

    def recorded_digest(self) -> str | None:
        """Return the digest that the header has, if it has exactly one."""
        digests = DIGEST.findall(self.header)
        return digests[0].decode() if len(digests) == 1 else None

    def computed_digest(self) -> str:
        """Compute SHA-256 over the whole file with the digits of its own digest taken as zeros."""
        return own_digest(self.header, memoryview(self.memory))


def open_container(path: Path, *, resident: bool = False) -> Container:
    """Map a safetensors file and check its header.

    A mapped file must stay as it is while it is used: written over in place, it would change the tensors or end the
    process. `resident` reads all of it into memory instead, for work that takes longer than a moment.
    """
    with open_regular(path, CheckpointError) as file:
        size = os.fstat(file.fileno()).st_size
        if size < 8:
            raise _damaged(path, f"it has {size} bytes, fewer than the 8 that give the length of a header")
        length = int.from_bytes(os.pread(file.fileno(), 8, 0), "little")
        if length > size - 8:
            raise _damaged(path, f"its header claims {length:,} bytes, but only {size - 8:,} follow")
        HEADER_BYTES.check(length, f"the header of {path}", CheckpointError)
        memory = _read(path, file) if resident else mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
        header = memory[8 : 8 + length]
    entries = _parse(path, header)
    metadata = entries.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise _damaged(path, "its metadata is not text by name")
    places = {name: _place(path, name, entry, 8 + length) for name, entry in entries.items()}
    _check_coverage(path, places, 8 + length, size)
    return Container(
        path=path,
        memory=memory,
        header=header,
        start=8 + length,
        places=places,
        metadata=metadata,
        resident=resident,
    )


def _read(path: Path, file: BufferedReader) -> mmap.mmap:
    """Read a file into memory of its own, in pages that `release` can give back."""
    before = os.fstat(file.fileno())
    check_memory(before.st_size, str(path))
    memory = mmap.mmap(-1, before.st_size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    room, count = memoryview(memory), 0
    while some := file.readinto(room[count:]):
        count += some
    room.release()
    after = os.fstat(file.fileno())
    if count < before.st_size or (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
        raise CheckpointError(f"{path} was changed while it was read; try again when nothing writes it.")
    return memory


def write_container(file: BinaryIO, source: TensorSource, metadata: Mapping[str, str], *, digest: bool) -> str | None:
    """Write tensors one by one; with `digest`, SHA-256 of everything else goes into the header at the end.

    Tensors of odd length come last, which keeps all others aligned for vector instructions.
    """
    sizes = {name: _itemsize(source, name) * math.prod(source.specs[name].shape) for name in source}
    order = sorted(sizes, key=lambda name: (sizes[name] % _ALIGNMENT != 0, -_itemsize(source, name), name))
    text = dict(metadata) | ({"vitrail.sha256": NO_DIGEST} if digest else {})
    header = _header(source, order, text)
    hashed = hashlib.sha256()

    def put(data: Any) -> None:
        file.write(data)
        if digest:
            hashed.update(data)

    put(len(header).to_bytes(8, "little"))
    put(header)
    for name in filter(sizes.get, order):  # an empty tensor may have strides that have no view as bytes
        put(source[name].detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
    if not digest:
        return None
    place = DIGEST.search(header)
    assert place is not None  # noqa: S101 - the header above has it
    file.seek(8 + place.start(1))
    file.write(hashed.hexdigest().encode())
    return hashed.hexdigest()


def _itemsize(source: TensorSource, name: str) -> int:
    dtype = source.specs[name].dtype
    if dtype not in _NAMES or dtype is None:
        raise CheckpointError(f"the tensor {name!r} is {dtype}, which a safetensors file here does not hold.")
    return dtype.itemsize


def _header(source: TensorSource, order: Iterable[str], metadata: Mapping[str, str]) -> bytes:
    entries: dict[str, Any] = {"__metadata__": dict(metadata)}
    begin = 0
    for name in order:
        shape, dtype = source.specs[name]
        assert dtype is not None  # noqa: S101 - checked by _itemsize
        end = begin + math.prod(shape) * dtype.itemsize
        entries[name] = {"dtype": _NAMES[dtype], "shape": list(shape), "data_offsets": [begin, end]}
        begin = end
    header = json.dumps(entries, separators=(",", ":")).encode()
    header += b" " * (-(len(header) + 8) % _ALIGNMENT)
    HEADER_BYTES.check(len(header), "the header with labels and provenance", CheckpointError)
    return header


def _parse(path: Path, header: bytes) -> dict[str, Any]:
    try:
        text = header.decode()
    except UnicodeDecodeError as error:
        raise _damaged(path, f"its header cannot be read ({error})") from None
    entries = parse_json(text, f"{path} is damaged or not a safetensors file: its header", CheckpointError)
    if not isinstance(entries, dict):
        raise _damaged(path, "its header is not a table of tensors")
    return entries


def _place(path: Path, name: str, entry: Any, start: int) -> tuple[Spec, int]:
    """Check the entry of one tensor in the header."""
    fields = {"dtype", "shape", "data_offsets"}
    if not isinstance(entry, dict) or set(entry) != fields:
        raise _damaged(path, f"its header does not give {name!r} a dtype, a shape and data_offsets, and nothing else")
    shape, offsets = entry["shape"], entry["data_offsets"]
    for numbers in (shape, offsets):
        if not isinstance(numbers, list) or not all(type(number) is int and 0 <= number < 2**63 for number in numbers):
            raise _damaged(path, f"its header gives {name!r} a size or place that is not a whole number")
    if not isinstance(entry["dtype"], str) or entry["dtype"] not in DTYPES:
        raise _damaged(path, f"{name!r} has the type {entry['dtype']!r}, but only {', '.join(DTYPES)} are read")
    dtype = DTYPES[entry["dtype"]]
    if len(offsets) != 2 or len(shape) > 8 or offsets[1] - offsets[0] != math.prod(shape) * dtype.itemsize:
        raise _damaged(path, f"{name!r} of the shape {shape} does not fill its place {offsets}")
    return Spec(tuple(shape), dtype), start + offsets[0]


def _check_coverage(path: Path, places: dict[str, tuple[Spec, int]], start: int, size: int) -> None:
    """Refuse tensors that overlap, and bytes that belong to no tensor."""
    at = start
    for name, ((shape, dtype), begin) in sorted(
        places.items(), key=lambda item: (item[1][1], math.prod(item[1][0].shape))
    ):
        if begin != at:
            raise _damaged(path, f"{name!r} begins at byte {begin:,}, but the one before it ends at {at:,}")
        at += math.prod(shape) * (dtype.itemsize if dtype else 0)
    if at != size:
        raise _damaged(path, f"its tensors end at byte {at:,}, but the file has {size:,}")


def _damaged(path: Path, reason: str) -> CheckpointError:
    return CheckpointError(f"{path} is damaged or not a safetensors file: {reason}; get the file again.")
