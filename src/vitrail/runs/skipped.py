"""Images that a run could not read and was allowed to skip: each is listed once, in `skipped.jsonl`."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from vitrail.base.lines import append_row, read_lines, write_rows
from vitrail.data.batch import Batch
from vitrail.data.dataset import Dataset


def noted(batches: Iterator[Batch], dataset: Dataset, path: Path) -> Iterator[Batch]:
    """Yield the batches, and list each broken image in them once."""
    names = set(_names(path))
    for batch in batches:
        for index, reason in batch.broken:
            name = dataset.name(index)
            if name not in names:
                names.add(name)
                append_row(path, {"name": name, "split": dataset.split, "reason": reason})
        yield batch


def skipped_names(folder: Path) -> list[str]:
    """Return the images that any rank has skipped so far."""
    return sorted({name for path in folder.glob("skipped*.jsonl") for name in _names(path)})


def check_skipped(folder: Path) -> list[str]:
    """Leave damaged lines of the lists out, before a run relies on them; return notes about them."""
    notes = []
    for path in sorted(folder.glob("skipped*.jsonl")):
        lines = read_lines(path, _is_skip)
        if lines.damaged:
            notes += lines.set_aside(path)
            write_rows(path, lines.rows)
    return notes


def _names(path: Path) -> list[str]:
    return [row["name"] for row in read_lines(path, _is_skip).rows]


def _is_skip(row: dict[str, Any]) -> bool:
    return isinstance(row.get("name"), str)
