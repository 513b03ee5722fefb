"""Measurements as JSON lines, and in trackers where a run has any.

`metrics.jsonl` has the same lines for the same config, whether or not the run was interrupted; times go to
`timing.jsonl`. Trackers (tensorboard, wandb, mlflow) get both.
"""

import os
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from vitrail.base.errors import WriteError
from vitrail.base.files import sync_folder
from vitrail.base.lines import append_row, read_lines, write_rows


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

    def rewind(self, step: int) -> list[str]:
        """Remove the lines after `step`, which a resumed run writes again; return notes about damaged lines."""
        notes = []
        for path in filter(Path.exists, (self.metrics_path, self.timing_path)):
            lines = read_lines(path, is_measurement)
            notes += lines.set_aside(path)
            write_rows(path, [row for row in lines.rows if row["step"] <= step])
        return notes

    def log(self, step: int, metrics: dict[str, float], timing: dict[str, float] | None = None) -> None:
        """Append a line to each file."""
        for path, values in ((self.metrics_path, metrics), (self.timing_path, timing)):
            if values:
                append_row(path, {"step": step} | values)
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


def is_measurement(row: dict[str, Any]) -> bool:
    """Tell whether a row is the numbers of a step."""
    return type(row.get("step")) is int and all(type(value) in (int, float) for value in row.values())


def read_measurements(path: Path) -> list[dict[str, Any]]:
    """Read the rows of a journal's file, without damaged lines."""
    return read_lines(path, is_measurement).rows
