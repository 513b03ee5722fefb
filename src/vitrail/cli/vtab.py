"""Fine-tune a model on the tasks of VTAB-1k by the paper's rule, and print the accuracies beside the paper's (Table 9).

ROOT holds a folder for each task, such as caltech101, with the lists train800val200.txt and test.txt and the images
that they name. The tasks that are there are run: 384 pixels, 2,500 steps of 512 images at a rate of 0.01, trained on
train800val200, measured on test. Each is a run folder below --out; the same command again resumes where it was stopped,
and keeps what is finished. Under torchrun, ranks share each batch.

Example: vitrail vtab b16.safetensors vtab-1k/ --tasks dtd svhn
"""

from dataclasses import dataclass, fields
from functools import partial
from typing import Annotated

from vitrail.base.ranks import Ranks
from vitrail.cli.names import in_flags
from vitrail.cli.report import Positional, Switch, flag, parse_size, print_json, print_table
from vitrail.cli.stoppable import carry_out
from vitrail.recipes.results import TABLE_9, VTAB_GROUPS
from vitrail.runs.config import Device
from vitrail.runs.series import Row
from vitrail.studies.vtab import VtabResult
from vitrail.studies.vtab_tasks import TASKS
from vitrail.training.signals import StopSignal
from vitrail.verbs.vtab import VtabRequest, settle_vtab
from vitrail.verbs.watch import watched


@dataclass(frozen=True, kw_only=True)
class Arguments:
    """Flags of `vitrail vtab`."""

    model: Annotated[str, Positional, flag("MODEL")]
    """The model to begin with: any file that `vitrail show` reads."""
    root: Annotated[str, Positional, flag("ROOT")]
    """The folder in which the folders of the tasks lie."""
    tasks: Annotated[tuple[str, ...], flag("TASK [TASK ...]", "all that are there")] = ()
    """Tasks to run, such as dtd svhn."""
    out: Annotated[str | None, flag("FOLDER", "runs/vtab-MODEL")] = None
    """Where the run folders of the tasks lie."""
    image_size: Annotated[str | None, flag("PIXELS|HxW", "384")] = None
    """Height and width that images are resized to, in pixels."""
    steps: Annotated[int | None, flag("INT", "2500")] = None
    """Updates of the weights, for each task."""
    batch: Annotated[int | None, flag("INT", "512")] = None
    """Images in an update, over all ranks."""
    learning_rate: Annotated[float | None, flag("FLOAT", "0.01")] = None
    """The highest learning rate."""
    seed: int = 0
    """Everything random follows from it."""
    skip_broken: Annotated[str, flag("NUMBER|PERCENT", "0")] = "0"
    """How many broken images of a task may be skipped, such as 5 or 1%."""
    micro_batch: Annotated[int | None, flag("INT", "the whole batch of a rank")] = None
    """Images that go through the model at once."""
    workers: int = 0
    """Processes that read images; 0 reads in the training process."""
    threads: Annotated[int | None, flag("INT", "torch's own choice")] = None
    """Threads for computing on the CPU."""
    device: Device = "auto"
    """Where to compute; auto takes a GPU if there is one."""
    num_heads: Annotated[int | None, flag("INT", "what the file tells")] = None
    """Attention heads of MODEL, where its file does not tell."""
    pickle: Switch = False
    """Let torch's pickled files be opened, of which only tensors are read."""
    json: Switch = False
    """Write JSON to stdout."""


def run(arguments: Arguments) -> int:
    """Run what is there, and print the table."""
    size = None if arguments.image_size is None else parse_size(arguments.image_size)
    asked = {field.name: getattr(arguments, field.name) for field in fields(VtabRequest)} | {"image_size": size}
    request = VtabRequest(**asked)

    def work(ranks: Ranks, stop: StopSignal) -> VtabResult:
        return settle_vtab(request, ranks).carry_out(partial(watched, quiet=not ranks.first, words=in_flags), stop)

    def show(result: VtabResult) -> None:
        if arguments.json:
            print_json(result.as_dict())
        else:
            _print(result)

    return carry_out(work, show, threads=arguments.threads, device=arguments.device)


def _print(result: VtabResult) -> None:
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
