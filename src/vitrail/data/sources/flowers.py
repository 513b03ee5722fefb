"""Oxford Flowers-102 as published: `jpg/image_00001.jpg`, `imagelabels.mat`, `setid.mat`.

The published split is `trnid`, `valid` and `tstid` (1020, 1020 and 6149 images). The files give classes numbers from
1 to 102 and no names, so the numbers are the names.
"""

from pathlib import Path

import numpy as np

from vitrail.base.errors import InputError
from vitrail.data.names import names_of
from vitrail.data.sources.files import Files, is_file_in, real_folders
from vitrail.data.sources.matlab import read_matlab
from vitrail.data.sources.pile import NO_SPLIT, Pile
from vitrail.data.sources.present import missing_files

_CLASSES = 102
_SPLITS = {"train": "trnid", "val": "valid", "test": "tstid"}


def is_flowers(folder: Path) -> bool:
    """Return whether a folder has the three parts of the data set."""
    lists = (folder / "imagelabels.mat", folder / "setid.mat")
    return (folder / "jpg").is_dir() and all(is_file_in(folder, path) for path in lists)


def open_flowers(folder: Path) -> Pile:
    """Read the published labels and splits."""
    labels = _numbers(folder / "imagelabels.mat", "labels")
    if not len(labels) or labels.min() < 1 or labels.max() > _CLASSES:
        raise InputError(f"{folder / 'imagelabels.mat'} has labels that are not from 1 to {_CLASSES}.")
    splits = np.full(len(labels), NO_SPLIT, np.int8)
    for code, key in enumerate(_SPLITS.values()):
        ids = _numbers(folder / "setid.mat", key)
        if len(ids) and (ids.min() < 1 or ids.max() > len(labels)):
            raise InputError(f"{key} of {folder / 'setid.mat'} names images beyond the {len(labels)} that have labels.")
        splits[ids - 1] = code
    paths = names_of(b"jpg/image_%05d.jpg" % number for number in range(1, len(labels) + 1))
    rows, missing = missing_files(folder, paths)
    return Pile(
        pictures=Files(folder, paths.take(rows), real_folders(folder)),
        targets=(labels[rows] - 1).astype(np.int32),
        names=tuple(map(str, range(1, _CLASSES + 1))),
        fixed=True,
        splits=splits[rows],
        split_names=tuple(_SPLITS),
        broken=tuple(missing),
    )


def _numbers(path: Path, key: str) -> np.ndarray:
    values = read_matlab(path).get(key)
    if not isinstance(values, np.ndarray):
        raise InputError(f"{path} has no array {key!r}; get the published file.")
    return values.reshape(-1).astype(np.int64)
