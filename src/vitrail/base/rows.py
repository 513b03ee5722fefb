"""Rows as CSV that every reader splits into the same cells."""

import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import BinaryIO

from vitrail.base.outputs import read_head


def read_header(path: Path) -> list[str]:
    """Return the first row of a CSV, as far as it lies near the beginning of the file."""
    line = read_head(path).decode("utf-8-sig", errors="replace").partition("\n")[0]
    return next(csv.reader([line]), [])


def write_csv(file: BinaryIO, rows: Iterable[Sequence[str | float | None]]) -> None:
    """Write rows in UTF-8; lone surrogates are escaped, and a row with a carriage return is quoted."""
    text = io.TextIOWrapper(file, encoding="utf-8", errors="backslashreplace", newline="", write_through=True)
    writer = csv.writer(text, lineterminator="\n")
    quoting = csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_ALL)
    for row in rows:
        odd = any("\r" in cell for cell in row if isinstance(cell, str))  # csv does not quote these by itself
        (quoting if odd else writer).writerow(row)
    text.detach()
