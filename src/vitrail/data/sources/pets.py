"""Oxford-IIIT Pets as published: `images/*.jpg`, `annotations/trainval.txt` and `annotations/test.txt`.

A line is `Abyssinian_100 1 1 1`: an image, the number of its class from 1 on, and two numbers that are not read. The
class has the name before the last underscore.
"""

from pathlib import Path

import numpy as np

from vitrail.base.errors import InputError
from vitrail.base.reading import read_text
from vitrail.data.names import NamesBuilder
from vitrail.data.sources.files import Files, is_file_in, real_folders
from vitrail.data.sources.pile import Pile
from vitrail.data.sources.present import missing_files

_LISTS = {"train": "trainval.txt", "test": "test.txt"}


def is_pets(folder: Path) -> bool:
    """Return whether a folder has the images and the lists."""
    lists = [folder / "annotations" / name for name in _LISTS.values()]
    return (folder / "images").is_dir() and all(is_file_in(folder, path) for path in lists)


def open_pets(folder: Path) -> Pile:
    """Read the published lists."""
    paths, numbers, splits = NamesBuilder(), [], []
    classes: dict[int, str] = {}
    for code, name in enumerate(_LISTS.values()):
        path = folder / "annotations" / name
        for at, line in enumerate(read_text(path, errors="replace").splitlines(), start=1):
            if not line.strip() or line.startswith("#"):
                continue
            image, number = [*line.split(), "", ""][:2]
            if not (number.isascii() and number.isdigit() and len(number) < 5 and int(number) > 0) or "/" in image:
                raise InputError(f"line {at} of {path} is not `NAME NUMBER ...`: {line[:60]!r}.")
            breed = image.rpartition("_")[0] or image
            if classes.setdefault(int(number), breed) != breed:
                raise InputError(f"line {at} of {path} gives {breed} the number of {classes[int(number)]}, {number}.")
            paths.add(f"images/{image}.jpg".encode())
            numbers.append(int(number))
            splits.append(code)
    if not numbers:
        raise InputError(f"the lists in {folder / 'annotations'} name no images.")
    if sorted(classes) != list(range(1, len(classes) + 1)):
        raise InputError(f"the lists in {folder / 'annotations'} number {len(classes)} classes up to {max(classes)}.")
    names = paths.build()
    rows, missing = missing_files(folder, names)
    return Pile(
        pictures=Files(folder, names.take(rows), real_folders(folder)),
        targets=np.array(numbers, np.int32)[rows] - 1,
        names=tuple(classes[number] for number in sorted(classes)),
        fixed=True,
        splits=np.array(splits, np.int8)[rows],
        split_names=tuple(_LISTS),
        broken=tuple(missing),
    )
