"""Which files a command may replace: never its inputs, and files of another kind only with `force`.

A kind is recognised by the content of a file, never by its name: the same command may run again over its own earlier
output, and a mistyped name destroys nothing.
"""

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vitrail.base.errors import ConfigError, InputError
from vitrail.base.files import check_writable, path_of

HEAD = 2**20
"""Bytes at the beginning of a file by which most kinds are recognised."""


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind of file that a command writes."""

    name: str
    """The kind with its article, such as `a table of predictions`."""
    suffixes: tuple[str, ...] = ()
    """How its name must end, in small letters; without any, all names are allowed."""
    holds: Callable[[Path], bool]
    """Whether a file is of this kind; one that cannot be read as such may raise OSError or ValueError."""


def marked(mark: bytes) -> Callable[[Path], bool]:
    """Return a function that recognises a file by a mark near its beginning."""
    return lambda path: mark in read_head(path)


def read_head(path: Path) -> bytes:
    """Return the beginning of a file."""
    with path.open("rb") as file:
        return file.read(HEAD)


def check_output(
    name: str | os.PathLike[str], kind: Kind, *, inputs: Iterable[Any] = (), force: bool = False, setting: str
) -> Path:
    """Return the path of a file that may be written, or refuse it before the work that leads to it.

    `inputs` are what the command reads; those that are not paths are ignored. `force` allows a file of
    another kind to be replaced, but never an input.
    """
    path = path_of(name, setting)
    if kind.suffixes and path.suffix.lower() not in kind.suffixes:
        raise ConfigError(f"{path} is to be {kind.name}; give a name that ends in {' or '.join(kind.suffixes)}.")
    check_writable(path)
    check_replaceable(path, kind, inputs=inputs, force=force)
    return path


def check_folder(
    name: str | os.PathLike[str], kind: Kind, page: str, *, inputs: Iterable[Any] = (), force: bool = False
) -> Path:
    """Return the folder `out` that may get a `page` and more, or refuse it before the work that leads to it."""
    folder = path_of(name, "out")
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file, but is to be {kind.name}; give another name.")
    check_replaceable(folder, kind, inputs=inputs, force=force)
    check_writable(folder / page if folder.is_dir() else folder)
    return folder


def check_replaceable(path: Path, kind: Kind, *, inputs: Iterable[Any], force: bool) -> None:
    """Refuse to replace an input of the command, or, without `force`, a file of another kind."""
    if not path.exists():
        return
    for source in inputs:
        if isinstance(source, str | os.PathLike) and _is_same(path, source):
            raise InputError(f"{path} is read by this command, so it cannot also be written; give another name.")
    if not force and not _is_empty(path) and not _holds(path, kind):
        raise InputError(
            f"{path} exists and is not {kind.name}, so it is not replaced; give another name, or `force=True`."
        )


def _is_same(path: Path, source: str | os.PathLike[str]) -> bool:
    try:
        return path.samefile(source)
    except (OSError, ValueError):  # nothing is there: a pattern, the name of a data set
        return False


def _is_empty(path: Path) -> bool:
    return not any(path.iterdir()) if path.is_dir() else path.stat().st_size == 0


def _holds(path: Path, kind: Kind) -> bool:
    try:
        return kind.holds(path)
    except (OSError, ValueError, InputError):
        return False
