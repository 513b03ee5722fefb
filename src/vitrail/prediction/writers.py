"""Predictions as CSV, JSON lines or Parquet: a row for each image, in order, whole or not at all."""

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO

from vitrail.base.errors import ImageError
from vitrail.base.extras import require
from vitrail.base.files import atomic_write
from vitrail.base.outputs import Kind, check_output, read_head
from vitrail.base.rows import read_header, write_csv

ROW_GROUP = 10_000
"""Rows of a Parquet file that are in memory at a time."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """One line of the output."""

    path: str
    """The image."""
    top: tuple[tuple[str, float], ...] = ()
    """The most probable classes with their probabilities; none for an image that could not be read."""
    error: str | None = None
    """Why there is no answer."""

    @classmethod
    def of(cls, path: str, answer: tuple[tuple[int, float], ...] | ImageError, labels: Sequence[str]) -> "Row":
        """Make a row of an answer, with names in place of numbers."""
        if isinstance(answer, ImageError):
            return cls(path=path, error=str(answer))
        return cls(path=path, top=tuple((labels[number], probability) for number, probability in answer))

    def as_dict(self) -> dict[str, Any]:
        """Return the row as JSON lines have it."""
        if self.error is not None:
            return {"path": self.path, "error": self.error}
        label, probability = self.top[0]
        listed = [{"label": name, "probability": value} for name, value in self.top]
        return {"path": self.path, "label": label, "probability": probability, "top": listed}

    def cells(self, top: int) -> list[str | float | None]:
        """Return the row as tables have it: path, label, probability, label_2, probability_2, ..., error."""
        pairs = [cell for pair in self.top for cell in pair]
        return [self.path, *pairs, *[None] * (2 * top - len(pairs)), self.error]


def columns(top: int) -> list[str]:
    """Return the names of the columns of tables."""
    pairs = [
        f"{name}_{place}" if place > 1 else name for place in range(1, top + 1) for name in ("label", "probability")
    ]
    return ["path", *pairs, "error"]


def _holds_predictions(path: Path) -> bool:
    """Return whether a file is a table of predictions, in any of its three forms."""
    head = read_head(path)
    if head.startswith(b"PAR1"):
        names = require("pyarrow.parquet", extra="parquet", purpose="reading Parquet").read_schema(path).names
    elif head.startswith(b"{"):
        line = head.partition(b"\n")[0]
        return b', "top": [{"label": ' in line or json.loads(line).keys() == {"path", "error"}
    else:
        names = read_header(path)
    return len(names) % 2 == 0 and names == columns(len(names) // 2 - 1)


PREDICTIONS = Kind(name="a table of predictions", suffixes=(".csv", ".jsonl", ".parquet"), holds=_holds_predictions)


def check_predictions(out: str | os.PathLike[str], inputs: Iterable[Any], *, force: bool) -> Path:
    """Return the path of an output that may be written; of the inputs, `@LIST` stands for the list itself."""
    files = (word[1:] if isinstance(word, str) and word.startswith("@") else word for word in inputs)
    path = check_output(out, PREDICTIONS, inputs=files, force=force, setting="out")
    if path.suffix.lower() == ".parquet":
        require("pyarrow.parquet", extra="parquet", purpose="writing Parquet")
    return path


def write_rows(path: Path, rows: Iterable[Row], *, top: int) -> None:
    """Write all rows; a reader of the file finds all of them, or what was there before."""
    write = {".csv": _write_csv, ".jsonl": _write_json_lines, ".parquet": _write_parquet}[path.suffix.lower()]
    with atomic_write(path) as file:
        write(file, iter(rows), top)


def _write_csv(file: BinaryIO, rows: Iterator[Row], top: int) -> None:
    write_csv(file, chain([columns(top)], (row.cells(top) for row in rows)))


def _write_json_lines(file: BinaryIO, rows: Iterator[Row], _: int) -> None:
    for row in rows:
        file.write(f"{json.dumps(row.as_dict(), ensure_ascii=False)}\n".encode(errors="backslashreplace"))


def _write_parquet(file: BinaryIO, rows: Iterator[Row], top: int) -> None:
    arrow = require("pyarrow", extra="parquet", purpose="writing Parquet")
    parquet = require("pyarrow.parquet", extra="parquet", purpose="writing Parquet")
    names = columns(top)
    kinds = [arrow.float64() if name.startswith("probability") else arrow.string() for name in names]
    schema = arrow.schema(list(zip(names, kinds, strict=True)))
    with parquet.ParquetWriter(file, schema) as writer:
        while some := list(islice(rows, ROW_GROUP)):
            cells = zip(*([_clean(cell) for cell in row.cells(top)] for row in some), strict=True)
            arrays = [arrow.array(column, kind) for column, kind in zip(cells, kinds, strict=True)]
            writer.write_table(arrow.table(arrays, schema=schema))


def _clean(cell: str | float | None) -> str | float | None:
    return _text(cell) if isinstance(cell, str) else cell


def _text(text: str) -> str:
    """Escape what is not a character, such as half of a pair of surrogates."""
    return text.encode(errors="backslashreplace").decode()
