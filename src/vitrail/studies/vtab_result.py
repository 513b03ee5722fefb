"""The results on VTAB-1k: the accuracy of each task and their means, beside the paper's (Table 9)."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from vitrail.base.table import Table, Tabular
from vitrail.recipes.results import TABLE_9, VTAB_GROUPS
from vitrail.runs.series import Row
from vitrail.runs.series import Table as SeriesTable
from vitrail.studies.vtab_tasks import TASKS


@dataclass(frozen=True, kw_only=True)
class Means:
    """The mean accuracies of some tasks."""

    groups: Mapping[str, float]
    """The mean of each group that has a task."""
    overall: float | None
    """The mean over all tasks; None without any."""
    tasks: int
    """The number of tasks; the paper's score has 19."""

    @property
    def complete(self) -> bool:
        """Whether the mean is over all 19 tasks."""
        return self.tasks == len(TASKS)


@dataclass(frozen=True, kw_only=True, repr=False)
class VtabResult(Tabular):
    """The results of the tasks."""

    model: str
    root: str
    path: Path
    """The folder of the run folders."""
    table: SeriesTable
    """The row of each task that was run."""
    missing: tuple[str, ...]
    """Tasks without a folder."""

    @cached_property
    def means(self) -> Means:
        """The means over the tasks that did not diverge."""
        return summarise({row.cell: row.accuracy for row in self.table.finished if row.accuracy is not None})

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values for JSON, beside the paper's results."""
        return {
            "model": self.model,
            "root": self.root,
            "tasks": [self._task(row) for row in self.table.rows],
            "missing": list(self.missing),
            "groups": dict(self.means.groups),
            "mean": self.means.overall,
            "mean_over": self.means.tasks,
            "complete": self.means.complete,
        }

    def tables(self) -> list[Table]:
        """Return the accuracies group by group, beside the paper's (Table 9)."""
        means, of_task = self.means, {row.cell: row for row in self.table.rows}
        rows: list[tuple[str, ...]] = []
        for group, tasks in VTAB_GROUPS.items():
            there = [task for task in tasks if task in of_task]
            rows += [_task_row(of_task[task]) for task in there]
            if group in means.groups:
                scored = [task for task in there if of_task[task].accuracy is not None]
                mean = f"{100 * means.groups[group]:.1f}"
                rows.append((_mean_of(group, len(scored), len(tasks)), "", mean, *_paper(scored)))
        if means.overall is not None:
            overall = f"{100 * means.overall:.1f}"
            scored = [row.cell for row in self.table.finished]
            rows.append((_mean_of("all", means.tasks, len(TASKS)), "", overall, *_paper(scored)))
        columns = ("task", "images", "accuracy", *TABLE_9)
        return [Table(title=f"VTAB-1k with {self.model}", columns=columns, rows=tuple(rows), notes=self._notes())]

    def _notes(self) -> tuple[str, ...]:
        notes = [f"{row.cell} diverged at step {row.steps} and is in no mean." for row in self.table.diverged]
        if not self.means.complete:
            notes.append(
                f"The mean over {self.means.tasks} tasks is not the paper's score, which is over all {len(TASKS)}; its "
                "columns are averaged over the same tasks here."
            )
        return (*notes, *([f"Not there: {', '.join(self.missing)}."] if self.missing else []))

    def _task(self, row: Row) -> dict[str, Any]:
        return {
            "task": row.cell,
            "group": next(group for group, tasks in VTAB_GROUPS.items() if row.cell in tasks),
            "accuracy": row.accuracy,
            "images": row.images,
            "diverged": row.diverged,
            "run": str(self.path / row.folder),
            "paper": {name: column[row.cell] for name, column in TABLE_9.items()},
        }


def summarise(accuracies: Mapping[str, float]) -> Means:
    """Average the tasks."""
    groups = {group: [accuracies[task] for task in tasks if task in accuracies] for group, tasks in VTAB_GROUPS.items()}
    return Means(
        groups={group: sum(values) / len(values) for group, values in groups.items() if values},
        overall=sum(accuracies.values()) / len(accuracies) if accuracies else None,
        tasks=len(accuracies),
    )


def _task_row(row: Row) -> tuple[str, ...]:
    accuracy = "diverged" if row.accuracy is None else f"{100 * row.accuracy:.1f}"
    return (row.cell, f"{row.images or 0:,}", accuracy, *(f"{column[row.cell]:.1f}" for column in TABLE_9.values()))


def _mean_of(name: str, there: int, tasks: int) -> str:
    return f"= {name}, mean of {there}" + (f" of {tasks}" if there < tasks else "")


def _paper(tasks: list[str]) -> list[str]:
    """Average the paper's columns over some tasks."""
    return [f"{sum(column[task] for task in tasks) / len(tasks):.1f}" for column in TABLE_9.values()]
