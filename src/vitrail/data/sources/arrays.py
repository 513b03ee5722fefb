"""Images that are arrays in memory: `.npz` files, and the contents of idx and CIFAR files.

    x_train, y_train, x_test, y_test (x_val, y_val)     or x, y     or images, labels     class_names if you like

Images are N x H x W, N x H x W x C or N x C x H x W (C at the end wins when both could be). Numbers: uint8 as they
are; whole numbers from 0 to 255; floats from 0 to 1 (times 255) or from 0 to 255, rounded; anything else is refused.
"""

import hashlib
import math
import os
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import UInt8

from vitrail.base.errors import InputError, VitrailError
from vitrail.base.limits import ARRAY_GROWTH, ENTRIES, check_unpacked
from vitrail.base.reading import fill, open_regular
from vitrail.data.dataset import UNLABELLED
from vitrail.data.sources.pile import MOST_CLASSES, Codes, Pile, class_name

ImageArray = UInt8[np.ndarray, "image height width channel"]

_MOST_CHANNELS = 64
_NAMES = ("class_names", "label_names", "classes")


@dataclass(frozen=True, eq=False)
class Part:
    """The images of one split."""

    name: str
    """The name of the array for the user."""
    split: str | None
    images: ImageArray
    labels: np.ndarray | None


class ArrayPictures:
    """Images in arrays, one part after the other."""

    def __init__(self, where: str, parts: Sequence[Part]) -> None:
        self.where, self.parts = where, tuple(parts)
        self._ends = np.cumsum([len(part.images) for part in parts])

    def __len__(self) -> int:
        """Count the images."""
        return int(self._ends[-1])

    def _place(self, row: int) -> tuple[Part, int]:
        at = int(np.searchsorted(self._ends, row, side="right"))
        return self.parts[at], row - (int(self._ends[at - 1]) if at else 0)

    def name(self, row: int) -> str:
        """Return the array and the number in it."""
        part, at = self._place(row)
        return f"{self.where}:{part.name}[{at}]"

    def read(self, row: int) -> np.ndarray:
        """Return height x width x channel."""
        part, at = self._place(row)
        return np.array(part.images[at])  # a copy: nobody writes into the data, and a mapped file is left as it is

    def digest(self, rows: Codes) -> bytes:
        """Digest the numbers of images, some thousand at a time."""
        hashed, first = hashlib.sha256(), 0
        for part in self.parts:
            own = rows[(rows >= first) & (rows < first + len(part.images))] - first
            for start in range(0, len(own), 1024):
                hashed.update(np.ascontiguousarray(part.images[own[start : start + 1024]]).data)
            first += len(part.images)
        return hashed.digest()


def pile_of(where: str, parts: Sequence[Part], names: Sequence[str] = (), notes: tuple[str, ...] = ()) -> Pile:
    """Make a pile of arrays; without class names the numbers are the names."""
    for part in parts:
        if part.labels is not None and len(part.labels) != len(part.images):
            raise InputError(f"{where} has {len(part.images)} images but {len(part.labels)} labels in {part.name}.")
    channels = {part.images.shape[3] for part in parts}
    if len(channels) > 1:
        raise InputError(f"{where} has images of {' and '.join(map(str, sorted(channels)))} channels; give one kind.")
    if not sum(len(part.images) for part in parts):
        raise InputError(f"{where} has no images: its arrays are empty.")
    labels = [np.full(len(part.images), UNLABELLED) if part.labels is None else part.labels for part in parts]
    ends = [int(end) for part in labels if len(part) for end in (part.min(), part.max())]
    low, high = min(ends), max(ends)
    if low < UNLABELLED or (names and high >= len(names)) or high >= MOST_CLASSES:
        wrong = low if low < UNLABELLED else high
        raise InputError(
            f"{where} has the label {wrong}, but labels go from 0 to {len(names or range(MOST_CLASSES)) - 1}."
        )
    split_names = tuple(dict.fromkeys(part.split for part in parts if part.split))
    return Pile(
        pictures=ArrayPictures(where, parts),
        targets=np.concatenate([part.astype(np.int32) for part in labels]),
        names=tuple(map(class_name, names)) or tuple(map(str, range(high + 1))),
        fixed=bool(names),
        numeric=not names,
        splits=np.repeat(
            [split_names.index(part.split) for part in parts if part.split], [len(part.images) for part in parts]
        )
        if split_names
        else None,
        split_names=split_names,
        channels=channels.pop(),
        notes=notes,
    )


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


def to_images(array: np.ndarray, what: str) -> ImageArray:
    """Bring numbers to uint8 and axes to image, height, width, channel."""
    if array.ndim == 3:
        array = array[..., None]
    elif array.ndim != 4:
        raise InputError(f"{what} has the shape {array.shape}, but images need 3 or 4 axes: N x H x W (x C).")
    elif array.shape[3] > 4 and (array.shape[1] <= 4 or array.shape[1] <= _MOST_CHANNELS < array.shape[3]):
        array = np.moveaxis(array, 1, 3)
    if array.shape[3] > _MOST_CHANNELS or 0 in array.shape[1:]:
        raise InputError(
            f"{what} has the shape {array.shape}; no axis of it can be channels (at most {_MOST_CHANNELS})."
        )
    return to_bytes(array, what)


def to_bytes(array: np.ndarray, what: str) -> ImageArray:
    """Bring numbers to uint8, a piece at a time."""
    if array.dtype == np.uint8:
        return array
    if array.dtype.kind not in "uifb":
        raise InputError(f"{what} holds {array.dtype}, but images are numbers.")
    if not array.size:
        return array.astype(np.uint8)
    low, high = float(array.min()), float(array.max())
    if not (low >= 0 and high <= 255):  # what is not a number fails here too
        raise InputError(
            f"{what} goes from {low:g} to {high:g}, but pixels are uint8, or floats from 0 to 1, or numbers from 0 to "
            "255."
        )
    scale = 255.0 if array.dtype.kind == "b" or (array.dtype.kind == "f" and high <= 1) else 1.0
    pixels = np.empty(array.shape, np.uint8)
    for start in range(0, len(array), 1024):
        pixels[start : start + 1024] = np.rint(array[start : start + 1024].astype(np.float32) * scale)
    return pixels


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
