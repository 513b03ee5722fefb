"""CIFAR-10 and CIFAR-100, binary version.

A record is the label (CIFAR-100: the coarse one, then the fine one, which is used) and 3072 bytes: red, green and
blue, each 32 x 32. Class names come from `batches.meta.txt` or `fine_label_names.txt`.
"""

import re
from pathlib import Path

import numpy as np

from vitrail.base.errors import InputError
from vitrail.base.reading import read_text
from vitrail.data.sources.arrays import Part, pile_of
from vitrail.data.sources.files import is_file_in
from vitrail.data.sources.pile import Pile

_PIXELS = 3 * 32 * 32
_TEN = re.compile(r"(data_batch_\d|test_batch)\.bin")
_HUNDRED = ("train.bin", "test.bin")


def is_cifar(folder: Path) -> bool:
    """Return whether a folder holds the files of one of the two."""
    return bool(_files(folder)[0])


def is_pickled_cifar(folder: Path) -> bool:
    """Return whether a folder holds the version made of pickles."""
    return (folder / "data_batch_1").is_file() or ((folder / "train").is_file() and (folder / "meta").is_file())


def _files(folder: Path) -> tuple[list[Path], int]:
    """Return the files and how many labels a record of theirs has."""
    ten = sorted(path for path in folder.glob("*.bin") if _TEN.fullmatch(path.name) and is_file_in(folder, path))
    if ten:
        return ten, 1
    hundred = [folder / name for name in _HUNDRED if is_file_in(folder, folder / name)]
    return (hundred if hundred and hundred[0].name == "train.bin" else []), 2


def open_cifar(folder: Path) -> Pile:
    """Read the batches of a folder."""
    files, labels = _files(folder)
    parts = []
    for path in files:
        if path.stat().st_size % (labels + _PIXELS) or not path.stat().st_size:
            raise InputError(
                f"{path} has {path.stat().st_size} bytes, which is not a multiple of {labels + _PIXELS}; "
                "it is cut off. Get the file again."
            )
        records = np.memmap(path, np.uint8, "r").reshape(-1, labels + _PIXELS)
        images = np.moveaxis(records[:, labels:].reshape(-1, 3, 32, 32), 1, 3)
        split = "test" if path.name.startswith("test") else "train"
        parts.append(Part(path.name, split, images, np.array(records[:, labels - 1])))
    parts.sort(key=lambda part: part.split != "train")
    listed = folder / ("batches.meta.txt" if labels == 1 else "fine_label_names.txt")
    names = read_text(listed, errors="replace").split() if is_file_in(folder, listed) else []
    return pile_of(str(folder), parts, names)
