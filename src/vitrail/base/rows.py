"""Rows as CSV that every reader splits where we did."""

import csv
import io
import re
from collections.abc import Iterable, Sequence
from typing import BinaryIO


_FORMULA = re.compile(r"'*[=+\-@\t\r]")
"""How a cell begins that a spreadsheet would run, or that `guarded` has changed."""


def guarded(cell: str) -> str:
    """Put an apostrophe before text that a spreadsheet would run as a formula, as its users do."""
    return f"'{cell}" if _FORMULA.match(cell) else cell


def unguarded(cell: str) -> str:
    """Undo `guarded`."""
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell


def write_csv(file: BinaryIO, rows: Iterable[Sequence[str | float | None]]) -> None:
    """Write rows in UTF-8; what is no character is written out, and a row with a carriage return is quoted."""
    text = io.TextIOWrapper(file, encoding="utf-8", errors="backslashreplace", newline="", write_through=True)
    writer = csv.writer(text, lineterminator="\n")
    quoting = csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_ALL)
    for row in rows:
        odd = any("\r" in cell for cell in row if isinstance(cell, str))  # which csv takes for plain
        (quoting if odd else writer).writerow(row)
    text.detach()
