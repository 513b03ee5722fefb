"""Measurements as JSON lines, and in trackers where a run has any.

`metrics.jsonl` has the same lines for the same config, whether or not the run was interrupted; times go to
`timing.jsonl`. Trackers (tensorboard, wandb, mlflow) get both.
"""

import json
import os
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from vitrail.base.errors import WriteError
from vitrail.base.files import atomic_write, sync_folder


@runtime_checkable
class Tracker(Protocol):
    """Somewhere else to send measurements."""

    def log(self, step: int, values: dict[str, float]) -> None:
        """Record the values of one step."""

    def close(self) -> None:
        """Send the rest and finish."""


class Journal:
    """The measurements of one run, a line each."""

    def __init__(self, folder: Path, trackers: tuple[Tracker, ...] = ()) -> None:
        self.metrics_path, self.timing_path = folder / "metrics.jsonl", folder / "timing.jsonl"
        self.trackers = trackers

    def rewind(self, step: int) -> None:
        """Remove the lines after `step`: a resumed run writes them again."""
        for path in (self.metrics_path, self.timing_path):
            if path.exists():
                rows = [row for row in read_rows(path) if row.get("step", 0) <= step]
                with atomic_write(path) as file:
                    file.write("".join(json.dumps(row) + "\n" for row in rows).encode())

    def log(self, step: int, metrics: dict[str, float], timing: dict[str, float] | None = None) -> None:
        """Append a line to each file."""
        for path, values in ((self.metrics_path, metrics), (self.timing_path, timing)):
            if values:
                try:
                    with path.open("a") as file:
                        file.write(json.dumps({"step": step} | values) + "\n")
                except OSError as error:
                    raise WriteError(f"{path} could not be written: {error.strerror or error}.") from error
        for tracker in self.trackers:
            tracker.log(step, metrics | (timing or {}))

    def sync(self) -> None:
        """Flush the lines to the disk: a run that resumes from a checkpoint does not repeat the lines before it."""
        try:
            for path in filter(Path.exists, (self.metrics_path, self.timing_path)):
                with path.open("rb") as file:
                    os.fsync(file.fileno())
            sync_folder(self.metrics_path.parent)
        except OSError as error:
            raise WriteError(f"{self.metrics_path} could not be written: {error.strerror or error}.") from error

    def close(self) -> None:
        """Let trackers finish."""
        for tracker in self.trackers:
            tracker.close()


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Read JSON lines; a last line that a kill cut off is left out."""
    rows = []
    for line in path.read_text().splitlines() if path.exists() else ():
        try:
            rows.append(json.loads(line))
        except ValueError:
            break
    return rows
