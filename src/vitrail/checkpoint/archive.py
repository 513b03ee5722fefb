"""NumPy's `.npz`: a zip of arrays, read without trusting it and written as Google's programs read it.

Nothing is unpickled, and nothing is unpacked before its size is known: the zip's directory and the header of each
array must agree, and a file may not grow beyond a multiple of its own size.
"""

import math
import zipfile
import zlib
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

import numpy as np
import torch
from torch import Tensor

from vitrail.base.errors import CheckpointError
from vitrail.base.limits import ENTRIES, WEIGHTS_GROWTH, check_unpacked
from vitrail.base.reading import check_regular, fill
from vitrail.base.tensors import Spec, TensorSource

# Whatever zipfile and zlib raise for a bad archive; NotImplementedError is a compression they do not know.
BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError, RuntimeError, ValueError, KeyError)
_DTYPES = {"f8": torch.float64, "f4": torch.float32, "f2": torch.float16, "V2": torch.bfloat16}


def open_archive(path: Path) -> TensorSource:
    """Read the directory of an `.npz` and the header of every array in it."""
    try:
        check_regular(path, CheckpointError)
        archive = zipfile.ZipFile(path)
        entries = _check_directory(path, archive)
        headers = {name: _read_header(path, archive, entry) for name, entry in entries.items()}
    except BROKEN as error:
        raise _damaged(path, f"{type(error).__name__}: {error}") from None
    specs = {name: Spec(shape, _dtype(kind)) for name, (shape, _, kind, _) in headers.items()}

    def fetch(name: str) -> Tensor:
        try:
            return _read_array(archive, entries[name], *headers[name])
        except BROKEN as error:
            raise _damaged(path, f"the array {name!r} cannot be unpacked ({error})") from None
        except TypeError:
            raise CheckpointError(
                f"{path} holds the array {name!r} of the type {headers[name][2]}, but weights are numbers."
            ) from None

    return TensorSource(origin=str(path), specs=specs, fetch=fetch)


def write_archive(file: BinaryIO, source: TensorSource) -> None:
    """Write tensors as an uncompressed `.npz`, one by one; bfloat16 goes out as JAX writes it, two bytes of no type."""
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name in source:
            tensor = source[name].detach().cpu().contiguous()
            array = tensor.view(torch.int16).numpy().view("V2") if tensor.dtype == torch.bfloat16 else tensor.numpy()
            entry = zipfile.ZipInfo(f"{name}.npy", (1980, 1, 1, 0, 0, 0))  # the same model gives the same bytes
            with archive.open(entry, "w", force_zip64=True) as stream:
                np.lib.format.write_array(stream, array, allow_pickle=False)


def _check_directory(path: Path, archive: zipfile.ZipFile) -> Mapping[str, zipfile.ZipInfo]:
    """Refuse anything but a plain zip of arrays, and what would unpack to far more than it is."""
    entries = check_packed(path, archive)
    odd = [entry.filename for entry in entries if not entry.filename.endswith(".npy") or entry.flag_bits & 1]
    if odd:
        raise CheckpointError(f"{path} is a zip, but not of NumPy arrays: it holds {', '.join(odd[:5])}.")
    names = [entry.filename.removesuffix(".npy") for entry in entries]
    if twice := sorted(name for name, count in Counter(names).items() if count > 1):
        raise CheckpointError(f"{path} holds some arrays twice: {', '.join(twice[:5])}.")
    return dict(zip(names, entries, strict=True))


def check_packed(path: Path, archive: zipfile.ZipFile) -> list[zipfile.ZipInfo]:
    """Return what a zip of weights holds, unless that would unpack to far more than it is."""
    entries = archive.infolist()
    ENTRIES.check(len(entries), str(path), CheckpointError)
    unpacked = sum(entry.file_size for entry in entries)
    check_unpacked(str(path), path.stat().st_size, unpacked, WEIGHTS_GROWTH, CheckpointError)
    return entries


def _read_header(
    path: Path, archive: zipfile.ZipFile, entry: zipfile.ZipInfo
) -> tuple[tuple[int, ...], bool, np.dtype[np.generic], int]:
    """Return shape, order, type and offset of one array, and check that it fills its entry exactly."""
    with archive.open(entry) as stream:
        version = np.lib.format.read_magic(stream)
        read = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}.get(version)
        if read is None:
            raise _damaged(path, f"{entry.filename} is of the unknown .npy version {version}")
        try:
            shape, fortran, kind = read(stream)
        except Exception as error:  # NumPy reads it as Python text, which fails in any way
            raise ValueError(f"the header of {entry.filename} cannot be read ({error})") from None
        offset = stream.tell()
    if kind.hasobject:
        raise CheckpointError(
            f"{path} holds pickled Python objects in {entry.filename}, which could be any program; they are never read."
        )
    if any(side < 0 for side in shape) or offset + math.prod(shape) * kind.itemsize != entry.file_size:
        raise _damaged(
            path, f"{entry.filename} claims {entry.file_size:,} bytes, which its shape {shape} does not fill"
        )
    return tuple(shape), bool(fortran), kind, offset


def _read_array(
    archive: zipfile.ZipFile,
    entry: zipfile.ZipInfo,
    shape: tuple[int, ...],
    fortran: bool,
    kind: np.dtype[np.generic],
    offset: int,
) -> Tensor:
    """Unpack one array whose header has been checked."""
    with archive.open(entry) as stream:
        stream.read(offset)
        buffer = bytearray(entry.file_size - offset)
        filled = fill(stream, memoryview(buffer))
        if filled < len(buffer) or stream.read(1):
            raise EOFError(f"{filled:,} of {len(buffer):,} bytes")
    array = np.frombuffer(buffer, dtype=kind).reshape(shape, order="F" if fortran else "C")
    native = np.ascontiguousarray(array.astype(kind.newbyteorder("="), copy=False)).reshape(shape)
    if _dtype(kind) == torch.bfloat16:
        return torch.from_numpy(native.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(native)


def _dtype(kind: np.dtype[np.generic]) -> torch.dtype | None:
    """Return torch's type for floating-point numbers; two bytes of no type are bfloat16."""
    return _DTYPES.get(kind.str[1:])


def _damaged(path: Path, reason: str) -> CheckpointError:
    return CheckpointError(f"{path} is damaged or no .npz file: {reason}; get the file again.")
