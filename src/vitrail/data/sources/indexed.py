"""A saved index: the result of opening a large source, in one file that opens at once.

Reading the headers of a thousand shards, or a list of a hundred million files, takes minutes; the index of either is
mapped into memory in a twentieth of a second for each million, and its pages are shared by all workers.
"""

import os
from pathlib import Path
from typing import Any

import numpy as np

from vitrail.base.errors import InputError
from vitrail.base.limits import IMAGE_BYTES
from vitrail.data.index import map_arrays, write_arrays
from vitrail.data.names import Names
from vitrail.data.sources.files import Files, real_folders
from vitrail.data.sources.pile import Pile
from vitrail.data.sources.shard_pictures import ShardPictures

_TEXTS = ("names", "split_names", "notes")


def write_index(pile: Pile, path: Path) -> None:
    """Write the index of files or shards; their paths are relative to its folder, if they are below it."""
    pictures = pile.pictures
    described: dict[str, Any] = {name: list(getattr(pile, name)) for name in _TEXTS}
    described |= {"fixed": pile.fixed, "numeric": pile.numeric, "splits": pile.splits is not None}
    described |= {"broken": pile.broken, "ignored": pile.ignored}
    arrays = {"targets": pile.targets.astype(np.int32)}
    if pile.splits is not None:
        arrays["splits"] = pile.splits.astype(np.int8)
    if isinstance(pictures, Files):
        names = pictures.paths
        described["root"] = _relative(pictures.root, path)
    elif isinstance(pictures, ShardPictures):
        names = pictures.names
        described["shards"] = [_relative(shard, path) for shard in pictures.shards]
        arrays |= {"shard": pictures.shard, "starts": pictures.offsets, "sizes": pictures.sizes}
    else:
        raise InputError(f"only files and tar shards have an index; {path.name} is not needed for other data.")
    write_arrays(path, described, arrays | {"blob": names.blob, "offsets": names.offsets})


def _relative(target: Path, index: Path) -> str:
    """Return a path as an index names it: relative to the index if it is below its folder, absolute otherwise."""
    real, folder = Path(os.path.abspath(target)), Path(os.path.abspath(index.parent))  # noqa: PTH100
    return str(real.relative_to(folder) if real.is_relative_to(folder) else real)


def open_index(path: Path, *, root: Path | None = None) -> Pile:
    """Map an index; its files must be below its own folder, or below `root`."""
    described, arrays = map_arrays(path)
    try:
        texts = {name: tuple(map(str, described[name])) for name in _TEXTS}
        broken, ignored = (
            tuple((str(name), str(reason)) for name, reason in described[kind]) for kind in ("broken", "ignored")
        )
        names = Names(arrays["blob"], arrays["offsets"])
        targets = arrays["targets"]
        splits = arrays["splits"] if described["splits"] else None
        columns = [targets] if splits is None else [targets, splits]
        pictures: Files | ShardPictures
        if "root" in described:
            place = _allowed(path, described["root"], root)
            pictures = Files(place, names, real_folders(place, root))
        else:
            files = tuple(_allowed(path, shard, root) for shard in described["shards"])
            pictures = ShardPictures(files, names, arrays["shard"], arrays["starts"], arrays["sizes"])
            columns += [pictures.shard, pictures.offsets, pictures.sizes]
            _check(path, _between(pictures.shard, len(files)) and _between(pictures.sizes, IMAGE_BYTES.value + 1))
            _check(path, _between(pictures.offsets, 1 << 62))
        steps_up = bool((names.offsets[1:] >= names.offsets[:-1]).all())
        _check(path, len(names.offsets) > 0 and int(names.offsets[0]) == 0)
        _check(path, int(names.offsets[-1]) == len(names.blob))
        _check(path, steps_up and all(len(column) == len(names) for column in columns))
        _check(path, _between(targets + 1, len(texts["names"]) + 1))
        _check(path, splits is None or _between(splits + 1, len(texts["split_names"]) + 1))
        return Pile(
            pictures=pictures,
            targets=targets,
            splits=splits,
            fixed=bool(described["fixed"]),
            numeric=bool(described["numeric"]),
            names=texts["names"],
            split_names=texts["split_names"],
            notes=texts["notes"],
            broken=broken,
            ignored=ignored,
        )
    except (KeyError, TypeError, ValueError, IndexError):
        raise _damaged(path) from None


def _allowed(path: Path, named: Any, root: Path | None) -> Path:
    """Return the path of a file or folder that an index names, if it may be read."""
    place = path.parent / str(named)
    inside = [folder.resolve() for folder in (path.parent, root) if folder is not None]
    if not any(place.resolve().is_relative_to(folder) for folder in inside):
        raise InputError(f"{path} names {place}, which is outside its folder; give a root folder above it.")
    return place


def _between(values: np.ndarray, end: int) -> bool:
    """Return whether whole numbers go from 0 to below an end."""
    return not len(values) or (int(values.min()) >= 0 and int(values.max()) < end)


def _check(path: Path, is_right: bool) -> None:
    if not is_right:
        raise _damaged(path)


def _damaged(path: Path) -> InputError:
    return InputError(f"{path} is damaged: its arrays do not fit together; make the index again.")
