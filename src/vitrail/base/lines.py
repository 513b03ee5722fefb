"""Files of JSON lines that grow with the work: what a kill or a damaged disk does to one line concerns no other."""

import json
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from vitrail.base.errors import WriteError
from vitrail.base.files import atomic_write
from vitrail.base.limits import LIST_BYTES
from vitrail.base.reading import read_bytes

Row = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Lines:
    """What a file of JSON lines holds."""

    rows: list[Row]
    """The lines that can be read, in order."""
    damaged: list[int]
    """The numbers of the others, from 1; not of a last line that a kill has cut off."""

    def set_aside(self, path: Path) -> list[str]:
        """Keep a file with damaged lines as it is, under another name; return the note about it, if there is one."""
        if not self.damaged:
            return []
        copy = _free_name(path)
        with atomic_write(copy) as file:
            file.write(path.read_bytes())
        others = f" and {len(self.damaged) - 1} others" if len(self.damaged) > 1 else ""
        lines = f"{path} is damaged in line {self.damaged[0]}{others}"
        return [f"{lines}; what can be read stays, and the file as it was is kept as {copy.name}."]


def read_lines(path: Path, is_row: Callable[[Row], bool] = bool) -> Lines:
    """Read JSON lines; `is_row` tells whether a line has what the caller needs. No file is a file without lines."""
    rows: list[Row] = []
    damaged: list[int] = []
    *lines, last = read_bytes(path, LIST_BYTES).split(b"\n") if path.exists() else [b""]
    for number, line in enumerate(lines, start=1):
        row = _parse(line)
        if row is not None and is_row(row):
            rows.append(row)
        else:
            damaged.append(number)
    row = _parse(last)
    return Lines(rows=[*rows, row] if row is not None and is_row(row) else rows, damaged=damaged)


def read_rows(path: Path) -> list[Row]:
    """Read the JSON lines that can be read."""
    return read_lines(path).rows


def write_rows(path: Path, rows: Iterable[Row]) -> None:
    """Write JSON lines, all or none."""
    with atomic_write(path) as file:
        file.write(b"".join(map(_line, rows)))


def append_row(path: Path, row: Mapping[str, Any], *, sync: bool = False) -> None:
    """Append a JSON line, with `sync` to the disk itself; what a kill has left of a last line goes."""
    try:
        with path.open("a+b") as file:
            _end_last_line(file)
            file.write(_line(row))
            if sync:
                file.flush()
                os.fsync(file.fileno())
    except OSError as error:
        raise WriteError(f"{path} could not be written: {error.strerror or error}.") from error


def _end_last_line(file: BinaryIO) -> None:
    """Complete a last line that only lacks its end, and remove one that lacks more."""
    size = file.seek(0, os.SEEK_END)
    if not size or (file.seek(size - 1), file.read(1))[1] == b"\n":
        return
    file.seek(0)
    last = file.read().rpartition(b"\n")[2]
    if _parse(last) is None:
        file.truncate(size - len(last))
    else:
        file.write(b"\n")


def _line(row: Mapping[str, Any]) -> bytes:
    return (json.dumps(dict(row), allow_nan=False) + "\n").encode()


def _parse(line: bytes) -> Row | None:
    """Return the table of a line; None for anything else."""
    try:
        row = json.loads(line.decode(), parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) else None


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def _free_name(path: Path) -> Path:
    """Return the first name for a copy that nothing has yet."""
    number = 1
    while (copy := path.with_name(f"{path.name}.damaged-{number}")).exists():
        number += 1
    return copy
