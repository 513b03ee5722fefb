"""Images that are arrays in memory: the contents of `.npz`, idx and CIFAR files.

Images are N x H x W, N x H x W x C or N x C x H x W (C at the end wins when both could be). Numbers: uint8 as they
are; whole numbers from 0 to 255; floats from 0 to 1 (times 255) or from 0 to 255, rounded; anything else is refused.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import UInt8

from vitrail.base.errors import InputError
from vitrail.data.dataset import UNLABELLED
from vitrail.data.sources.pile import MOST_CLASSES, Codes, Pile, class_name

ImageArray = UInt8[np.ndarray, "image height width channel"]

_MOST_CHANNELS = 64


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
