"""Rows as CSV that every reader splits into the same cells."""

import csv
import io
from collections.abc import Iterable, Sequence
from typing import BinaryIO


def write_csv(file: BinaryIO, rows: Iterable[Sequence[str | float | None]]) -> None:
    """Write rows in UTF-8; lone surrogates are escaped, and a row with a carriage return is quoted."""
    text = io.TextIOWrapper(file, encoding="utf-8", errors="backslashreplace", newline="", write_through=True)
    writer = csv.writer(text, lineterminator="\n")
    quoting = csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_ALL)
    for row in rows:
        odd = any("\r" in cell for cell in row if isinstance(cell, str))  # csv does not quote these by itself
        (quoting if odd else writer).writerow(row)
    text.detach()
