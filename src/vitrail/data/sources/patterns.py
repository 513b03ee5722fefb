"""Which files a pattern or a folder means, and to which split each tar file belongs."""

import errno
import fnmatch
import os
import re
import stat
from glob import has_magic
from itertools import product
from pathlib import Path

from vitrail.base.errors import InputError
from vitrail.data.sources.files import is_file_in
from vitrail.data.sources.pile import split_of

_BRACES = re.compile(r"\{([^{}]*)\}")
_RANGE = re.compile(r"([0-9]+)\.\.([0-9]+)")
_MOST_SHARDS = 1_000_000
_NOT_THERE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)


def is_pattern(where: str) -> bool:
    """Return whether a name is a pattern of several tar files."""
    return where.lower().endswith(".tar") and (bool(_BRACES.search(where)) or has_magic(where))


def expand(pattern: str) -> list[str]:
    """Write out braces: `{000..099}` counts, `{a,b}` lists, several multiply in the order of reading."""
    pieces = _BRACES.split(pattern)  # text, inside, text, inside, ..., text
    choices = [_choices(piece) if at % 2 else [piece] for at, piece in enumerate(pieces)]
    count = 1
    for choice in choices:
        count *= len(choice)
    if count > _MOST_SHARDS:
        raise InputError(f"{pattern} means {count} files; at most {_MOST_SHARDS} are read.")
    return ["".join(parts) for parts in product(*choices)]


def _choices(inside: str) -> list[str]:
    if match := _RANGE.fullmatch(inside):
        first, last = match.groups()
        if max(len(first), len(last)) > 18 or not int(first) <= int(last) < int(first) + _MOST_SHARDS:
            raise InputError(f"{{{inside}}} does not count upwards, or for more than {_MOST_SHARDS} steps.")
        return [str(number).zfill(len(first)) for number in range(int(first), int(last) + 1)]
    return inside.split(",")


def find_pattern(pattern: str) -> list[tuple[Path, str | None]]:
    """Return the tar files of a pattern, in order; files that braces name must be there."""
    files: list[Path] = []
    missing: list[str] = []
    for name in expand(pattern):
        if has_magic(name):
            files += map(Path, matching(name))
        elif Path(name).is_file():
            files.append(Path(name))
        else:
            missing.append(name)
    if missing:
        raise InputError(
            f"{pattern} names {len(missing)} tar files that are not there, such as {missing[0]}; "
            f"{len(files)} are there."
        )
    if not files:
        raise InputError(f"no tar file is called {pattern}.")
    return [(path, split_in(path)) for path in files]


def matching(pattern: str) -> list[str]:
    """Return the files that match a pattern, sorted; `**` matches any number of folders, each once.

    As Python's `glob`, which leaves out without a word what it may not list; here that is an error.
    """
    path = Path(pattern)
    places = [path.anchor]
    parts = path.parts[1:] if path.anchor else path.parts
    for number, part in enumerate(parts, start=1):
        deeper: list[str] = []
        for place in places:
            if part == "**":
                folders = _folders(place)
                deeper += folders
                if number == len(parts):
                    deeper += [os.path.join(folder, name) for folder in folders for name in _names(folder, "*")]  # noqa: PTH118
            else:
                names = _names(place, part) if has_magic(part) else [part]
                deeper += [os.path.join(place, name) for name in names]  # noqa: PTH118
        places = deeper
    return sorted({place for place in places if place and _status(place, links=False) is not None})


def _folders(place: str) -> list[str]:
    """Return a folder and all those inside it, each real one once."""
    folders: list[str] = []
    seen: set[tuple[int, int]] = set()
    waiting = [place]
    while waiting:
        here = waiting.pop()
        status = _status(here or ".")
        if status is None or not stat.S_ISDIR(status.st_mode) or (status.st_dev, status.st_ino) in seen:
            continue
        seen.add((status.st_dev, status.st_ino))
        folders.append(here)
        waiting += [os.path.join(here, name) for name in reversed(_names(here, "*"))]  # noqa: PTH118
    return folders


def _names(folder: str, part: str) -> list[str]:
    """List the names in a folder that a part of a pattern fits; hidden ones only where the part begins with a dot."""
    try:
        names = sorted(os.listdir(folder or "."))  # noqa: PTH208
    except OSError as error:
        if error.errno in _NOT_THERE:
            return []
        raise InputError(
            f"the folder {folder or '.'} cannot be listed: {error.strerror}; check its rights, or leave it out of the "
            "pattern."
        ) from None
    return [name for name in fnmatch.filter(names, part) if not name.startswith(".") or part.startswith(".")]


def _status(path: str, *, links: bool = True) -> os.stat_result | None:
    """Return the system's facts about a file or folder, through `links` or not; None when it does not exist."""
    try:
        return os.stat(path, follow_symlinks=links)  # noqa: PTH116
    except OSError as error:
        if error.errno in _NOT_THERE:
            return None
        raise InputError(f"{path}, which the pattern fits, cannot be read: {error.strerror}.") from None


def find_in_folder(folder: Path) -> list[tuple[Path, str | None]]:
    """Return the tar files of a folder, or of the split folders in it."""
    inner = sorted(path for path in folder.iterdir() if split_of(path.name) and path.is_dir())
    return [(path, split_in(path)) for place in (folder, *inner) for path in _tars(place, folder)]


def _tars(place: Path, folder: Path) -> list[Path]:
    named = (path for path in place.iterdir() if path.suffix.lower() == ".tar" and not path.name.startswith("."))
    return sorted(path for path in named if is_file_in(folder, path))


def split_in(path: Path) -> str | None:
    """Return the split in the name of a file (`train-0.tar`, `val_0.parquet`), or in that of its folder."""
    return split_of(re.split(r"[-_.]", path.name)[0]) or split_of(path.parent.name)
