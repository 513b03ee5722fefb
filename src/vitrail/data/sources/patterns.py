"""Which tar files a pattern or a folder means, and to which split each belongs."""

import re
from glob import has_magic
from itertools import product
from pathlib import Path

from vitrail.base.errors import InputError
from vitrail.data.sources.files import is_file_in
from vitrail.data.sources.pile import split_of

_BRACES = re.compile(r"\{([^{}]*)\}")
_RANGE = re.compile(r"([0-9]+)\.\.([0-9]+)")
_MOST_SHARDS = 1_000_000


def is_pattern(where: str) -> bool:
    """Tell whether a name stands for several tar files."""
    return where.lower().endswith(".tar") and (bool(_BRACES.search(where)) or has_magic(where))


def expand(pattern: str) -> list[str]:
    """Write out braces: `{000..099}` counts, `{a,b}` lists, several multiply in the order of reading."""
    pieces = _BRACES.split(pattern)  # text, inside, text, inside, ..., text
    choices = [_choices(piece) if at % 2 else [piece] for at, piece in enumerate(pieces)]
    count = 1
    for choice in choices:
        count *= len(choice)
    if count > _MOST_SHARDS:
        raise InputError(f"{pattern} stands for {count} files; at most {_MOST_SHARDS} are read.")
    return ["".join(parts) for parts in product(*choices)]


def _choices(inside: str) -> list[str]:
    if found := _RANGE.fullmatch(inside):
        first, last = found.groups()
        if max(len(first), len(last)) > 18 or not int(first) <= int(last) < int(first) + _MOST_SHARDS:
            raise InputError(f"{{{inside}}} does not count upwards, or for more than {_MOST_SHARDS} steps.")
        return [str(number).zfill(len(first)) for number in range(int(first), int(last) + 1)]
    return inside.split(",")


def find_pattern(pattern: str) -> list[tuple[Path, str | None]]:
    """Return the tar files of a pattern, in order; files that braces name must be there."""
    found: list[Path] = []
    missing: list[str] = []
    for name in expand(pattern):
        if has_magic(name):
            anchor = Path(Path(name).anchor or ".")
            found += sorted(anchor.glob(str(Path(name).relative_to(Path(name).anchor))))
        elif Path(name).is_file():
            found.append(Path(name))
        else:
            missing.append(name)
    if missing:
        raise InputError(
            f"{pattern} names {len(missing)} tar files that are not there, such as {missing[0]}; "
            f"{len(found)} are there."
        )
    if not found:
        raise InputError(f"no tar file is called {pattern}.")
    return [(path, split_in(path)) for path in found]


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
