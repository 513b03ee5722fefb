"""torch's own files (`.pth`, `.bin`): pickles, and so only opened when the caller allows it.

Both layouts are read here, by a reader that runs nothing (`program.py`): a zip with the program in `data.pkl` and a
member for each block of numbers, and the older one, with the program first and the blocks after it. A program that
names anything but tensors and plain data is refused, and there is no second attempt.
"""

import math
import mmap
import os
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import torch
from torch import Tensor

from vitrail.base.errors import CheckpointError
from vitrail.base.limits import TEXT_BYTES
from vitrail.base.memory import check_memory
from vitrail.base.reading import fill, open_regular
from vitrail.base.tensors import Spec, TensorSource
from vitrail.checkpoint.archive import BROKEN, check_packed
from vitrail.checkpoint.plain import Opaque, Stored
from vitrail.checkpoint.program import NameRefused, names_of, run
from vitrail.checkpoint.wrappers import Training, choose

_MAGIC = 0x1950A86A20F9469CFC6C
"""The first value of a file of the older layout."""
_TYPES = {
    "Double": torch.float64,
    "Float": torch.float32,
    "Half": torch.float16,
    "BFloat16": torch.bfloat16,
    "Long": torch.int64,
    "Int": torch.int32,
    "Short": torch.int16,
    "Char": torch.int8,
    "Byte": torch.uint8,
    "Bool": torch.bool,
}


@dataclass(frozen=True, kw_only=True)
class Block:
    """Where a block of numbers lies."""

    begin: int
    length: int
    """In bytes, unpacked."""
    member: zipfile.ZipInfo | None = None
    """The member of the zip, where it is compressed."""


@dataclass(frozen=True, kw_only=True)
class TorchFile:
    """A torch file: its plain data, and where the numbers of its tensors are."""

    path: Path
    data: Any
    blocks: Mapping[str, Block]
    memory: mmap.mmap
    buffers: dict[str, Any] = field(default_factory=dict)
    """Blocks that were copied out of the file."""

    def spec(self, name: str, stored: Stored) -> Spec:
        """Return the shape and type of a tensor, after it was checked against its block."""
        dtype = dtype_of(stored)
        block = self.blocks.get(stored.storage.key)
        if block is None:
            raise _damaged(self.path, f"the numbers of {name} are missing")
        count, size = math.prod(stored.shape), dtype.itemsize if dtype else 1
        last = sum((side - 1) * step for side, step in zip(stored.shape, stored.stride, strict=True)) if count else -1
        if count * size > block.length or len(stored.shape) > 8:
            raise CheckpointError(f"{self.path} holds tensors that do not have their own numbers: {name}.")
        if (stored.offset + last + 1) * size > block.length:
            raise _damaged(self.path, f"the numbers of {name} are cut short")
        return Spec(stored.shape, dtype)

    def tensor(self, stored: Stored) -> Tensor:
        """Return a tensor whose `spec` was checked, as a view of the file where that can be."""
        dtype = dtype_of(stored) or torch.uint8
        if 0 in stored.shape:
            return torch.empty(stored.shape, dtype=dtype)
        block = self.blocks[stored.storage.key]
        if stored.storage.key not in self.buffers and (block.member or block.begin % dtype.itemsize):
            self.keep(stored)
        buffer = self.buffers.get(stored.storage.key, self.memory)
        begin = 0 if stored.storage.key in self.buffers else block.begin
        flat = torch.frombuffer(buffer, dtype=dtype, count=block.length // dtype.itemsize, offset=begin)
        return flat.as_strided(stored.shape, stored.stride, stored.offset)

    def keep(self, stored: Stored) -> None:
        """Copy the block of a tensor into memory of its own."""
        block = self.blocks[stored.storage.key]
        if stored.storage.key in self.buffers or not block.length:
            return
        buffer = bytearray(block.length)
        with open_regular(self.path, CheckpointError) as file:
            try:
                count = self._unpack(block, file, memoryview(buffer))
            except BROKEN as error:
                raise _damaged(self.path, f"its numbers cannot be unpacked: {error}") from None
        if count < len(buffer):
            raise _damaged(self.path, "its numbers are cut short")
        self.buffers[stored.storage.key] = buffer

    def _unpack(self, block: Block, file: BinaryIO, buffer: memoryview) -> int:
        """Fill a buffer with the bytes of a block, and return how many there were."""
        if block.member is None:
            file.seek(block.begin)
            return fill(file, buffer)
        with zipfile.ZipFile(file) as archive, archive.open(block.member) as stream:
            return fill(stream, buffer)


def open_pickled(path: Path, *, resident: bool = False) -> Training:
    """Read the weights of a torch file and what it states about them; by memory map unless `resident`."""
    try:
        file = read_torch(path)
        chosen = choose(file.data, str(path))
        _check_stored(path, chosen.tensors)
        specs = {name: file.spec(name, value) for name, value in chosen.tensors.items()}
        if resident:
            keys = {value.storage.key for value in chosen.tensors.values()}
            check_memory(sum(file.blocks[key].length for key in keys), str(path))
            for value in chosen.tensors.values():
                file.keep(value)
    except CheckpointError:
        raise
    except NameRefused:
        raise CheckpointError(
            f"{path} is refused: {_strange_names(path)}. Nothing in it was run. Save the weights alone, "
            "torch.save(model.state_dict(), ...), or ask for a .safetensors file."
        ) from None
    except MemoryError:
        raise
    except Exception as error:  # a program of any bytes can fail in any way; none of them is a bug of ours
        raise _damaged(path, type(error).__name__) from None
    source = TensorSource(origin=str(path), specs=specs, fetch=lambda name: file.tensor(chosen.tensors[name]))
    return chosen.training(source)


def _check_stored(path: Path, tensors: Mapping[str, Stored | Opaque]) -> None:
    odd = [name for name, value in tensors.items() if isinstance(value, Opaque)]
    if odd:
        raise CheckpointError(f"{path} holds tensors that do not have their own numbers: {', '.join(odd[:5])}.")


def read_torch(path: Path) -> TorchFile:
    """Read the program of a torch file and find its blocks."""
    with open_regular(path, CheckpointError) as file:
        before = os.fstat(file.fileno())
        memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    if memory[:2] != b"PK":
        return _read_older(path, memory)
    with zipfile.ZipFile(path) as archive:
        members = {entry.filename.partition("/")[2]: entry for entry in check_packed(path, archive)}
        if "code" in {name.partition("/")[0] for name in members}:
            raise CheckpointError(
                f"{path} is a TorchScript program, as OpenAI's CLIP is published, and not weights; load it with "
                "torch.jit.load in a program of your own and save its state_dict()."
            )
        byteorder = archive.read(members["byteorder"]) if "byteorder" in members else b"little"
        if byteorder != b"little":
            raise CheckpointError(f"{path} was written on a machine that stores numbers big end first; save it again.")
        TEXT_BYTES.check(members["data.pkl"].file_size, f"the program of {path}", CheckpointError)
        data, _, _ = run(archive.read(members["data.pkl"]))
        blocks = {
            name.removeprefix("data/"): _block(memory, member)
            for name, member in members.items()
            if name.startswith("data/")
        }
    if path.stat().st_size != before.st_size:
        raise CheckpointError(f"{path} was changed while it was read; try again when nothing writes it.")
    return TorchFile(path=path, data=data, blocks=blocks, memory=memory)


def _block(memory: mmap.mmap, member: zipfile.ZipInfo) -> Block:
    """Find where the bytes of a member begin, after its own header."""
    if member.compress_type != zipfile.ZIP_STORED:
        return Block(begin=0, length=member.file_size, member=member)
    header = memory[member.header_offset : member.header_offset + 30]
    begin = (
        member.header_offset + 30 + int.from_bytes(header[26:28], "little") + int.from_bytes(header[28:30], "little")
    )
    if header[:4] != b"PK\x03\x04" or begin + member.file_size > len(memory):
        raise ValueError("a member of the zip is cut short")
    return Block(begin=begin, length=member.file_size)


def _read_older(path: Path, memory: mmap.mmap) -> TorchFile:
    """Read a number, a version, facts about the machine, the data, and the order of the blocks that follow."""
    program = memory[: TEXT_BYTES.value]
    first, end, _ = run(program)
    if first != _MAGIC or type(first) is not int:  # a pickle that torch did not write
        return TorchFile(path=path, data=first, blocks={}, memory=memory)
    for _ in range(2):
        _, end, _ = run(program, end)
    data, end, storages = run(program, end)
    keys, end, _ = run(program, end)
    blocks = {}
    for key in map(str, keys):
        dtype = _TYPES[storages[key].rpartition(".")[2].removesuffix("Storage")]
        length = int.from_bytes(memory[end : end + 8], "little") * dtype.itemsize
        if end + 8 + length > len(memory):
            raise EOFError
        blocks[key] = Block(begin=end + 8, length=length)
        end += 8 + length
    return TorchFile(path=path, data=data, blocks=blocks, memory=memory)


def dtype_of(stored: Stored) -> torch.dtype | None:
    """Return the type of a tensor; None stands for one that is not read."""
    if stored.dtype is not None:
        known = {str(dtype): dtype for dtype in _TYPES.values()}
        return known.get(stored.dtype)
    return _TYPES.get(stored.storage.kind.rpartition(".")[2].removesuffix("Storage"))


def _strange_names(path: Path) -> str:
    """Write which names of a program are the reason that it is refused."""
    with open_regular(path, CheckpointError) as file:
        if file.read(2) == b"PK":
            with zipfile.ZipFile(file) as archive:
                member = next(name for name in archive.namelist() if name.endswith("data.pkl"))
                names = names_of(archive.read(member))
        else:
            file.seek(0)
            names = names_of(file.read(TEXT_BYTES.value))
    names = [name for name in names if not name.startswith("torch.")] or names
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    listed = ", ".join(name[:80] for name in names[:3])
    return f"it names {listed}{more}, but only tensors and plain containers are read"


def _damaged(path: Path, reason: str) -> CheckpointError:
    return CheckpointError(f"{path} is damaged or not a torch file ({reason}); get the file again.")
