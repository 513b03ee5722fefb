"""Predictions as CSV, JSON lines or Parquet: a row for each image, in order, whole or not at all."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO

from vitrail.base.errors import ConfigError, ImageError, InputError, did_you_mean
from vitrail.base.extras import require
from vitrail.base.files import atomic_write, check_writable
from vitrail.base.rows import write_csv

SUFFIXES = (".csv", ".jsonl", ".parquet")
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


def check_output(path: Path) -> None:
    """Refuse an output that cannot be written, before any work is done."""
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise ConfigError(
            f"{path} is to hold predictions, which are written as {', '.join(SUFFIXES)}; give a name that ends in "
            f"one of these.{did_you_mean(suffix, SUFFIXES)}"
        )
    if suffix == ".parquet":
        require("pyarrow.parquet", extra="parquet", purpose="writing Parquet")
    if path.exists() and not path.is_file():
        raise InputError(f"{path} is not an ordinary file, but predictions are to be written there; give another name.")
    check_writable(path)


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
    """Write out what is no character, such as half of a pair of surrogates."""
    return text.encode(errors="backslashreplace").decode()
