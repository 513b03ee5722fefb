"""MNIST-style idx files, plain or compressed: `train-images-idx3-ubyte[.gz]`, `t10k-labels-idx1-ubyte[.gz]`.

A file is a magic number (0, 0, 8 for bytes, the number of axes), the length of each axis (4 bytes, big-endian), and
the bytes. Names may have something in front (`emnist-letters-train-...`) and a dot instead of the last hyphen.
"""

import gzip
import os
import re
import struct
import zlib
from pathlib import Path

import numpy as np

from vitrail.base.errors import InputError
from vitrail.base.limits import ARRAY_GROWTH, check_unpacked
from vitrail.base.reading import fill, open_regular
from vitrail.data.sources.arrays import Part, pile_of
from vitrail.data.sources.files import is_file_in
from vitrail.data.sources.pile import Pile

DEBIAN = Path("/usr/share/datasets/fashion-mnist")
"""Where Debian's package dataset-fashion-mnist puts its files."""

FASHION = ("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot")

_FILE = re.compile(r"(.*?)(train|t10k|test)-(images|labels)[-.]idx[13]-ubyte(\.gz)?", re.I)


def files_in(folder: Path) -> dict[tuple[str, str, str], Path]:
    """Find idx files: (beginning of the name, split, images or labels) -> path."""
    files: dict[tuple[str, str, str], Path] = {}
    for path in sorted(folder.iterdir()):
        if (match := _FILE.fullmatch(path.name)) and is_file_in(folder, path):
            split = "train" if match[2].lower() == "train" else "test"
            files.setdefault((match[1], split, match[3].lower()), path)
    return files


def is_idx(path: Path) -> bool:
    """Return whether a file is of this kind, by its name."""
    return _FILE.fullmatch(path.name) is not None


def open_idx(where: Path, *, called: str | None = None) -> Pile:
    """Read the idx files of a folder, or those that belong together with one file."""
    named = where if where.is_dir() else where.resolve()  # a link to one of the files means that file
    folder = where if where.is_dir() else named.parent
    files = files_in(folder)
    fronts = sorted({front for front, _, _ in files})
    if not where.is_dir():
        match = _FILE.fullmatch(named.name)
        fronts = [match[1]] if match else []
    if len(fronts) != 1:
        candidates = [path.name for (_, split, what), path in files.items() if split == "train" and what == "images"]
        raise InputError(f"{folder} holds several data sets; give one of the files {', '.join(candidates)}.")
    parts = []
    for split in ("train", "test"):
        images, labels = (files.get((fronts[0], split, what)) for what in ("images", "labels"))
        if images is None:
            continue
        parts.append(
            Part(images.name, split, _read(images, 3)[..., None], None if labels is None else _read(labels, 1))
        )
    if not parts:
        raise InputError(f"{folder} has idx files of labels only; the images (train-images-idx3-ubyte) are missing.")
    names = FASHION if "fashion" in (fronts[0] + folder.resolve().name).lower() else ()
    return pile_of(called or str(where), parts, names)


def _read(path: Path, axes: int) -> np.ndarray:
    """Read one file whose size agrees with its header."""
    packed = path.suffix.lower() == ".gz"
    try:
        with open_regular(path) as raw, gzip.open(raw) if packed else raw as file:
            header = file.read(4 + 4 * axes)
            if len(header) < 4 + 4 * axes or header[:4] != bytes([0, 0, 8, axes]):
                raise InputError(
                    f"{path} is not an idx file of bytes with {axes} axes: it begins with {header[:4].hex()}."
                )
            shape = struct.unpack(f">{axes}I", header[4:])
            size = int(np.prod(shape, dtype=object))
            length = os.fstat(raw.fileno()).st_size
            if packed:
                check_unpacked(str(path), length, size, ARRAY_GROWTH, InputError)
            content = np.empty(size if packed else min(size, length), np.uint8)
            count = fill(file, content.data)
            more = bool(file.read(1))
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path} cannot be read ({error}); get the file again.") from None
    if count < size or more:
        there = "more" if more else f"only {count}"
        raise InputError(f"{path} should have {size} bytes for the shape {shape}, but has {there}; get it again.")
    return content.reshape(shape)
