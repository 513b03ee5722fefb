"""A series of runs: named cells that are trained one after the other, and one table of their results.

Each cell is a run of its own, in a folder of its own: a stopped series resumes, and a finished cell
is not trained again. A cell that diverged is a result as well: its folder has the step and the reason
(`diverged.json`); without that file it is tried again.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from vitrail.base.errors import InputError
from vitrail.base.ranks import Ranks
from vitrail.base.reading import read_json
from vitrail.base.settings import from_dict, to_dict
from vitrail.runs.conduct import Watching, conduct
from vitrail.runs.config import RunConfig
from vitrail.runs.folder import TABLE, write_json
from vitrail.runs.train import Run
from vitrail.training.endings import DivergedError
from vitrail.training.signals import StopSignal

Value = str | int | float
Watch = Callable[[RunConfig, str], AbstractContextManager[Watching]]
"""Shows one of the runs, with a short description."""


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One run of a series."""

    name: str
    run: Run
    varied: Mapping[str, Value] = field(default_factory=dict)
    """The settings that differ from the other cells, by name."""
    notes: tuple[str, ...] = ()
    """Notes for the user before it starts."""


@dataclass(frozen=True, kw_only=True)
class Divergence:
    """The end of a run whose loss was not finite any more: `diverged.json` is this."""

    run: str
    """Identity of the run's settings."""
    step: int
    reason: str


@dataclass(frozen=True, kw_only=True)
class Row:
    """The result of one cell."""

    cell: str
    folder: str
    varied: Mapping[str, Value]
    steps: int
    """Steps that were taken."""
    split: str | None = None
    """The split that it was evaluated on; None without one."""
    images: int | None = None
    accuracy: float | None = None
    loss: float | None = None
    diverged: str | None = None
    """Why it has no result; None where it has one."""

    def as_dict(self) -> dict[str, Any]:
        """Return it for JSON."""
        return to_dict(self) | {"varied": dict(self.varied)}


@dataclass(frozen=True, kw_only=True)
class Table:
    """The rows of a series, in the order of its cells."""

    rows: tuple[Row, ...] = ()

    def __add__(self, other: "Table") -> "Table":
        """Put the rows of another table below these."""
        return Table(rows=(*self.rows, *other.rows))

    @property
    def finished(self) -> tuple[Row, ...]:
        """The rows that have a result."""
        return tuple(row for row in self.rows if row.diverged is None)

    @property
    def diverged(self) -> tuple[Row, ...]:
        """The rows that have no result."""
        return tuple(row for row in self.rows if row.diverged is not None)

    def columns(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """Return headings and cells as text: what varies, then the result."""
        varied = tuple(dict.fromkeys(name for row in self.rows for name in row.varied))
        lines = [
            (row.cell, *(_text(row.varied.get(name)) for name in varied), *_result(row), _text(row.images))
            for row in self.rows
        ]
        return ("cell", *varied, "accuracy", "loss", "images"), lines

    def __str__(self) -> str:
        """Write it with aligned columns."""
        headings, lines = self.columns()
        widths = [max(map(len, column)) for column in zip(headings, *lines, strict=True)]
        return "\n".join(
            "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip()
            for line in (headings, *lines)
        )

    def write(self, path: Path) -> None:
        """Write it as JSON; the file's rows of other cells stay, as when only a part of the series is run again."""
        rows = read_table(path)
        stored = {row["cell"]: row for row in rows}
        merged = stored | {row.cell: row.as_dict() for row in self.rows}
        if merged != stored:
            write_json(path, {"rows": list(merged.values())})


@dataclass(frozen=True, kw_only=True)
class Series:
    """The folder, ranks and watcher of a series; the caller has claimed the folder."""

    path: Path
    ranks: Ranks
    watch: Watch
    stop: StopSignal

    def carry_out(self, cells: Sequence[Cell], *, after: Table | None = None) -> Table:
        """Train the cells that are not finished, and return their rows.

        The table is written after each cell, with the rows of earlier cells. Every rank calls it; a stop raises
        `StoppedError`.
        """
        table = Table()
        read_table(self.path / TABLE)  # a damaged table is refused before anything is trained
        for number, cell in enumerate(cells, start=1):
            row = self._train(cell, f"{cell.name}, {number} of {len(cells)}" if len(cells) > 1 else cell.name)
            table += Table(rows=(row,))
            if self.ranks.first:
                ((after or Table()) + table).write(self.path / TABLE)
        self.ranks.wait()
        return table

    def _train(self, cell: Cell, words: str) -> Row:
        with self.watch(cell.run.config, words) as watching:
            for note in cell.notes:
                watching.note(note)
            row = self._row(cell, watching)
            watching.note(f"{words}: {_result(row)[0]}.")
        return row

    def _row(self, cell: Cell, watching: Watching) -> Row:
        """Train a cell, or read its stored result."""
        run = cell.run
        place = run.folder.path.relative_to(self.path).as_posix()
        divergence = read_divergence(run)
        if divergence is None:
            try:
                result = conduct(run, watching, self.stop)
            except DivergedError as error:
                divergence = Divergence(run=run.config.identity, step=error.step, reason=str(error))
                if self.ranks.first:
                    write_json(run.folder.diverged, to_dict(divergence))
            else:
                return Row(
                    cell=cell.name,
                    folder=place,
                    varied=cell.varied,
                    steps=result.steps,
                    split=result.split,
                    images=result.images,
                    accuracy=result.accuracy,
                    loss=result.loss,
                )
        return Row(cell=cell.name, folder=place, varied=cell.varied, steps=divergence.step, diverged=divergence.reason)


def read_table(path: Path) -> list[Any]:
    """Return the rows of a stored table, none where there is no file."""
    stored = read_json(path) if path.is_file() else {"rows": []}
    rows = stored.get("rows") if isinstance(stored, dict) else None
    if not isinstance(rows, list):
        raise InputError(f"{path} is damaged: it is not a table with rows; remove it, and it is written again.")
    return rows


def read_divergence(run: Run) -> Divergence | None:
    """Return how this run diverged before, if it did."""
    path = run.folder.diverged
    if not path.is_file():
        return None
    divergence = from_dict(Divergence, read_json(path), where=f"the notes in {path}")
    return divergence if divergence.run == run.config.identity else None


def _result(row: Row) -> tuple[str, str]:
    if row.diverged is not None:
        return f"diverged at step {row.steps}", "-"
    accuracy = "not measured" if row.accuracy is None else f"{row.accuracy:.2%}"
    return accuracy, "-" if row.loss is None else f"{row.loss:.4f}"


def _text(value: Value | None) -> str:
    return "-" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
