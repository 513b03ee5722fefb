"""Rows as CSV that every reader splits into the same cells."""

import csv
import io
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import BinaryIO

from vitrail.base.outputs import read_head

_FORMULA = re.compile(r"'*[=+\-@\t\r]")
"""The beginning of a cell that a spreadsheet would run, or that `guarded` changed."""
_NUMBER = re.compile(r"[+-]?[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?")


def read_header(path: Path) -> list[str]:
    """Return the first row of a CSV, if it is near the beginning of the file."""
    line = read_head(path).decode("utf-8-sig", errors="replace").partition("\n")[0]
    return next(csv.reader([line]), [])


def guarded(cell: str) -> str:
    """Put an apostrophe before text that a spreadsheet would run as a formula, as is usual there; numbers stay."""
    return f"'{cell}" if _FORMULA.match(cell) and not _NUMBER.fullmatch(cell) else cell


def unguarded(cell: str) -> str:
    """Undo `guarded`."""
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell


def write_csv(file: BinaryIO, rows: Iterable[Sequence[str | int | float | None]]) -> None:
    """Write rows in UTF-8; lone surrogates are escaped, and nothing is a formula.

    A row with a carriage return, which csv takes for plain, or with a cell that is guarded is quoted.
    """
    text = io.TextIOWrapper(file, encoding="utf-8", errors="backslashreplace", newline="", write_through=True)
    writer = csv.writer(text, lineterminator="\n")
    quoting = csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_ALL)
    for row in rows:
        cells = [guarded(cell) if isinstance(cell, str) else cell for cell in row]
        odd = any("\r" in cell for cell in cells if isinstance(cell, str)) or cells != list(row)
        (quoting if odd else writer).writerow(cells)
    text.detach()
