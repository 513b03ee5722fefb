"""Reading files that come from elsewhere: regular ones only, of a size that has a bound.

A pipe or a device is refused at once: it may never end, and opening a pipe may wait for ever.
"""

import json
import os
import stat
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from vitrail.base.errors import InputError, VitrailError
from vitrail.base.limits import LINE_BYTES, TEXT_BYTES, Limit

_PIECE = 2**20
_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
}


@runtime_checkable
class Stream(Protocol):
    """Bytes in pieces, from a file or out of an archive."""

    def read(self, size: int, /) -> bytes:
        """Return the next bytes, at most so many; none at the end."""


def open_regular(path: Path, error: type[VitrailError] = InputError) -> BufferedReader:
    """Open a regular file to read its bytes; anything else is refused without waiting for it."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        kind = stat.S_IFMT(os.fstat(handle).st_mode)
    except OSError as problem:
        raise error(f"{path} cannot be read: {problem.strerror or problem}.") from None
    except ValueError as problem:  # a name with a zero byte
        raise error(f"{str(path)!r} cannot be read: {problem}.") from None
    if kind != stat.S_IFREG:
        os.close(handle)
        raise error(f"{path} is {_KINDS.get(kind, 'no file')}, but a regular file is needed; copy it into one.")
    return os.fdopen(handle, "rb")


def check_regular(path: Path, error: type[VitrailError] = InputError) -> None:
    """Refuse anything but a regular file, for readers that open it by its name."""
    open_regular(path, error).close()


def read_bytes(path: Path, limit: Limit = TEXT_BYTES, error: type[VitrailError] = InputError) -> bytes:
    """Read a whole regular file of at most `limit` bytes."""
    with open_regular(path, error) as file:
        size = os.fstat(file.fileno()).st_size
        limit.check(size, str(path), error)
        try:
            return file.read(size + 1)  # asking for more would make room for it
        except OSError as problem:
            raise error(f"{path} cannot be read: {problem.strerror or problem}.") from None


def read_text(path: Path, error: type[VitrailError] = InputError, *, errors: str = "strict") -> str:
    """Read a small regular file of UTF-8, with or without a mark of it in front."""
    try:
        return read_bytes(path, TEXT_BYTES, error).decode("utf-8-sig", errors)
    except UnicodeDecodeError as problem:
        raise error(f"{path} is not text in UTF-8 (byte {problem.object[problem.start]:#04x}); save it so.") from None


def read_json(path: Path, error: type[VitrailError] = InputError) -> Any:
    """Read a small JSON file; a table that names something twice is refused."""
    return parse_json(read_text(path, error), str(path), error)


def parse_json(text: str, subject: str, error: type[VitrailError] = InputError) -> Any:
    """Parse JSON that comes from elsewhere; a table that names something twice is refused."""
    try:
        return json.loads(text, object_pairs_hook=_unique)
    except (ValueError, RecursionError) as problem:  # a number of 5000 digits is the first of these
        raise error(f"{subject} cannot be read as JSON ({problem}).") from None


def fill(file: Stream, room: memoryview) -> int:
    """Fill a buffer from a stream that may be compressed, a piece at a time, and return how many bytes came."""
    count = 0
    while count < len(room) and (piece := file.read(min(len(room) - count, _PIECE))):
        room[count : count + len(piece)] = piece
        count += len(piece)
    return count


def lines(file: BufferedReader, path: Path) -> Iterator[bytes]:
    """Walk over the lines of an open file, none of which may be longer than a line is."""
    longest = LINE_BYTES.value
    while line := file.readline(longest + 2):
        LINE_BYTES.check(len(line.rstrip(b"\r\n")), f"a line of {path}")
        yield line


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table: dict[str, Any] = {}
    for name, value in pairs:
        if name in table:
            raise ValueError(f"it has {name[:60]!r} more than once")
        table[name] = value
    return table
