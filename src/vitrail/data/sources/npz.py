"""Images and labels in an `.npz` file, by the names of its arrays.

    x_train, y_train, x_test, y_test (x_val, y_val)     or x, y     or images, labels     class_names if you like

Nothing is unpickled, and sizes are checked before anything is read.
"""

import math
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from vitrail.base.errors import InputError, VitrailError
from vitrail.base.limits import ARRAY_GROWTH, ENTRIES, check_unpacked
from vitrail.base.reading import fill, open_regular
from vitrail.data.sources.arrays import Part, pile_of, to_images
from vitrail.data.sources.pile import Pile

_NAMES = ("class_names", "label_names", "classes")


def open_npz(path: Path, *, called: str | None = None) -> Pile:
    """Read images, labels and class names from an `.npz` file."""

    def choose(members: set[str]) -> list[str]:
        pairs = [name for _, *pair in _parts(path, members) for name in pair]
        return [name for name in (*pairs, next((name for name in _NAMES if name in members), None)) if name]

    arrays = read_arrays(path, choose)
    triples = _parts(path, set(arrays))
    names_at = next((name for name in _NAMES if name in arrays), None)
    parts = [
        Part(images, split, to_images(arrays[images], f"{images} of {path}"), _labels(arrays, labels, path))
        for split, images, labels in triples
    ]
    names = [] if names_at is None else _class_names(arrays[names_at], path)
    return pile_of(called or str(path), parts, names)


def read_arrays(path: Path, choose: Callable[[set[str]], list[str]]) -> dict[str, np.ndarray]:
    """Read the arrays of an `.npz` file that `choose` names, given the names of all.

    Sizes are checked before anything is read, and nothing is unpickled.
    """
    try:
        with open_regular(path) as file, zipfile.ZipFile(file) as archive:
            ENTRIES.check(len(archive.infolist()), str(path))
            members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
            needed = choose(set(members))
            unpacked = sum(members[name].file_size for name in needed)
            check_unpacked(str(path), os.fstat(file.fileno()).st_size, unpacked, ARRAY_GROWTH, InputError)
            return {name: _read(archive, members[name], path) for name in needed}
    except VitrailError:
        raise
    except Exception as error:  # a damaged archive makes its reader fail in any way; none of them is a bug of ours
        raise InputError(f"{path} is damaged or not an .npz file ({error}); make it with numpy.savez.") from None


def _parts(path: Path, members: set[str]) -> list[tuple[str | None, str, str | None]]:
    """Find the arrays of images and of labels: split, images, labels."""
    parts: list[tuple[str | None, str, str | None]] = []
    for split, spellings in (
        ("train", ("train",)),
        ("val", ("val", "valid", "validation", "dev")),
        ("test", ("test",)),
    ):
        for word in spellings:
            for images, labels in ((f"x_{word}", f"y_{word}"), (f"{word}_images", f"{word}_labels")):
                if images in members:
                    parts.append((split, images, labels if labels in members else None))
    if not parts:
        for images, labels in (("x", "y"), ("images", "labels")):
            if images in members and not parts:
                parts.append((None, images, labels if labels in members else None))
    if not parts:
        raise InputError(
            f"{path} has the arrays {', '.join(sorted(members)[:10]) or 'none'}, but x_train and y_train (x_test, "
            "y_test), or x and y, or images and labels are needed."
        )
    return parts


def _labels(arrays: dict[str, np.ndarray], name: str | None, path: Path) -> np.ndarray | None:
    """Return labels as one axis of whole numbers."""
    if name is None:
        return None
    labels = arrays[name]
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1 or labels.dtype.kind not in "ui":
        raise InputError(
            f"{name} of {path} holds {labels.dtype} of the shape {labels.shape}, but labels are one whole number for "
            "each image."
        )
    return labels


def _class_names(array: np.ndarray, path: Path) -> list[str]:
    if array.ndim != 1 or array.dtype.kind not in "US":
        raise InputError(f"the class names of {path} are {array.dtype} of the shape {array.shape}, but text is needed.")
    try:
        names = array.tolist()
    except (SystemError, ValueError):  # numbers that are not letters
        raise InputError(f"the class names of {path} are not text; make the file again.") from None
    return [name.decode(errors="replace") if isinstance(name, bytes) else str(name) for name in names]


def _read(archive: zipfile.ZipFile, info: zipfile.ZipInfo, path: Path) -> np.ndarray:
    """Read one array, if its header is honest about its size and it holds plain values."""
    with archive.open(info) as file:
        shape, order, kind = _header(file)
        if kind.hasobject or kind.names is not None or kind.kind not in "uifbUS":
            raise InputError(f"{info.filename} of {path} holds {kind}, but plain numbers or text are needed.")
        size = math.prod(shape) * kind.itemsize
        if math.prod(shape) * max(kind.itemsize, 1) > info.file_size:  # text without letters takes no bytes
            raise InputError(f"{info.filename} of {path} is cut off: its header claims {size} bytes of data.")
        flat = np.empty(int(np.prod(shape)), kind)
        view = flat.view(np.uint8).data if flat.size and kind.itemsize else memoryview(b"")
        if (count := fill(file, view)) < size:
            raise InputError(f"{info.filename} of {path} is cut off after {count} of {size} bytes.")
    return flat.reshape(shape, order="F" if order else "C")


def _header(file: Any) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    version = np.lib.format.read_magic(file)
    if version == (1, 0):
        return np.lib.format.read_array_header_1_0(file)
    return np.lib.format.read_array_header_2_0(file)
