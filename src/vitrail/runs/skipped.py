"""Images that a run could not read and was allowed to pass over: each is listed once, in `skipped.jsonl`."""

import json
from collections.abc import Iterator
from pathlib import Path

from vitrail.base.journal import read_rows
from vitrail.data.batch import Batch
from vitrail.data.dataset import Dataset


def noted(batches: Iterator[Batch], dataset: Dataset, path: Path) -> Iterator[Batch]:
    """Pass batches on, and write down what was broken in them the first time that it is met."""
    known = {row["name"] for row in read_rows(path)}
    for batch in batches:
        for index, reason in batch.broken:
            name = dataset.name(index)
            if name not in known:
                known.add(name)
                with path.open("a") as file:
                    file.write(json.dumps({"name": name, "split": dataset.split, "reason": reason}) + "\n")
        yield batch


def skipped_names(folder: Path) -> list[str]:
    """Return what every rank has passed over so far."""
    return sorted({row["name"] for path in folder.glob("skipped*.jsonl") for row in read_rows(path)})
