"""Accuracies on VTAB-1k beside the paper's (Table 9)."""

from vitrail.cli.report import print_table
from vitrail.recipes.results import TABLE_9, VTAB_GROUPS
from vitrail.runs.series import Row
from vitrail.studies.vtab import VtabResult
from vitrail.studies.vtab_tasks import TASKS


def show_vtab(result: VtabResult) -> None:
    """Print the table, group by group."""
    means, of_task = result.means, {row.cell: row for row in result.table.rows}
    rows: list[tuple[str, ...]] = []
    for group, tasks in VTAB_GROUPS.items():
        there = [task for task in tasks if task in of_task]
        rows += [_task(of_task[task]) for task in there]
        if group in means.groups:
            scored = [task for task in there if of_task[task].accuracy is not None]
            mean = f"{100 * means.groups[group]:.1f}"
            rows.append((_mean_of(group, len(scored), len(tasks)), "", mean, *_paper(scored)))
    scored = [row.cell for row in result.table.finished]
    if means.overall is not None:
        overall = f"{100 * means.overall:.1f}"
        rows.append((_mean_of("all", means.tasks, len(TASKS)), "", overall, *_paper(scored)))
    notes = [f"{row.cell} diverged at step {row.steps} and is in no mean." for row in result.table.diverged]
    if not means.complete:
        score = f"is not the paper's score, which is over all {len(TASKS)}"
        notes.append(f"The mean over {means.tasks} tasks {score}; its columns are averaged over the same tasks here.")
    notes += [f"Not there: {', '.join(result.missing)}."] if result.missing else []
    print_table(f"VTAB-1k with {result.model}", ("task", "images", "accuracy", *TABLE_9), rows, notes=notes)


def _task(row: Row) -> tuple[str, ...]:
    accuracy = "diverged" if row.accuracy is None else f"{100 * row.accuracy:.1f}"
    return (row.cell, f"{row.images or 0:,}", accuracy, *(f"{column[row.cell]:.1f}" for column in TABLE_9.values()))


def _mean_of(name: str, there: int, tasks: int) -> str:
    return f"= {name}, mean of {there}" + (f" of {tasks}" if there < tasks else "")


def _paper(tasks: list[str]) -> list[str]:
    """Average the paper's columns over some tasks."""
    return [f"{sum(column[task] for task in tasks) / len(tasks):.1f}" for column in TABLE_9.values()]
