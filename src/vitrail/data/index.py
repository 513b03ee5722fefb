"""Flat arrays in a file, such as names and labels of any number of images: mapped into memory when it is opened."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
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
_KINDS = {torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64}


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
