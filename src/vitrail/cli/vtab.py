"""Fine-tune a model on the tasks of VTAB-1k by the paper's rule, and print the accuracies beside the paper's (Table 9).

ROOT holds a folder for each task, such as caltech101, with the lists train800val200.txt and test.txt and the images
that they name. The tasks that are there are run: 384 pixels, 2,500 steps of 512 images at a rate of 0.01, trained on
train800val200, measured on test. Each is a run folder below --out; the same command again goes on where it was stopped,
and keeps what is finished. Under torchrun, ranks share each batch.

Example: vitrail vtab b16.safetensors vtab-1k/ --tasks dtd svhn
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from vitrail.base.printable import printable
from vitrail.base.ranks import Ranks
from vitrail.cli.model_file import model_name
from vitrail.cli.report import Positional, Switch, flag, parse_size, print_json, print_table
from vitrail.cli.stoppable import carry_out
from vitrail.cli.watch import Watcher
from vitrail.recipes.results import TABLE_9, VTAB_GROUPS
from vitrail.recipes.vtab import TASKS, Means, find_tasks, summarise, task_data, task_run
from vitrail.runs.conduct import conduct
from vitrail.runs.config import Device
from vitrail.runs.start import open_source
from vitrail.runs.train import Run
from vitrail.train.signals import StopSignal

Finished = dict[str, tuple[Run, dict[str, Any]]]
"""Each task's run, and its figures."""


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

    def work(ranks: Ranks, stop: StopSignal) -> Finished:
        runs = _prepared(arguments, ranks)
        return {
            task: (ready, _conducted(f"{task}, {number} of {len(runs)}", ready, stop))
            for number, (task, ready) in enumerate(runs.items(), start=1)
        }

    def show(finished: Finished) -> None:
        runs = {task: ready for task, (ready, _) in finished.items()}
        results = {task: result for task, (_, result) in finished.items()}
        missing = [task for task in TASKS if task not in find_tasks(Path(arguments.root))]
        means = summarise({task: result["accuracy"] for task, result in results.items()})
        if arguments.json:
            print_json(_told(arguments, runs, results, missing, means))
        else:
            _print(f"VTAB-1k with {arguments.model}", results, missing, means)

    return carry_out(work, show, threads=arguments.threads, device=arguments.device)


def _prepared(arguments: Arguments, ranks: Ranks) -> dict[str, Run]:
    """Open every task before the first one starts, so that what is wrong with the last is said now."""
    folders = find_tasks(Path(arguments.root), arguments.tasks)
    source = open_source(arguments.model, pickle=arguments.pickle, num_heads=arguments.num_heads)
    out = Path(arguments.out or Path("runs") / f"vtab-{model_name(arguments.model)}")
    given = {"batch": arguments.batch, "schedule.peak": arguments.learning_rate, "seed": arguments.seed or None}
    changes = {path: value for path, value in given.items() if value is not None} | {
        "execution.device": arguments.device,
        "execution.workers": arguments.workers,
        "execution.micro_batch": arguments.micro_batch,
    }
    return {
        task: task_run(
            source,
            task_data(folder, skip_broken=arguments.skip_broken),
            out / task,
            ranks,
            image_size=None if arguments.image_size is None else parse_size(arguments.image_size),
            steps=arguments.steps,
            skip_broken=arguments.skip_broken,
            changes=changes,
        )
        for task, folder in folders.items()
    }


def _conducted(words: str, ready: Run, stop: StopSignal) -> dict[str, Any]:
    """Bring one task to its end, or say again what a finished one said."""
    data, held = ready.data, ready.data.held
    with Watcher(ready.config, quiet=not ready.ranks.first) as watcher:
        tested = 0 if held is None else len(held)
        watcher.note(f"{words}: {len(data.train)} images of {data.classes} classes, {tested} to be measured on.")
        for note in data.notes:
            watcher.note(printable(note))
        result = conduct(ready, watcher, stop)
        watcher.note(f"{words}: {result['accuracy']:.2%}.")
    return result


def _print(title: str, results: Mapping[str, Any], missing: list[str], means: Means) -> None:
    rows: list[tuple[str, ...]] = []
    for group, tasks in VTAB_GROUPS.items():
        there = [task for task in tasks if task in results]
        if not there:
            continue
        rows += [
            (
                task,
                f"{results[task]['images']:,}",
                f"{100 * results[task]['accuracy']:.1f}",
                *(f"{column[task]:.1f}" for column in TABLE_9.values()),
            )
            for task in there
        ]
        rows.append((_mean_of(group, len(there), len(tasks)), "", f"{100 * means.groups[group]:.1f}", *_paper(there)))
    rows.append((_mean_of("all", means.tasks, len(TASKS)), "", f"{100 * means.overall:.1f}", *_paper(list(results))))
    notes = []
    if not means.complete:
        score = f"is not the paper's score, which is over all {len(TASKS)}"
        notes.append(f"The mean over {means.tasks} tasks {score}; its columns are averaged over the same tasks here.")
    notes += [f"Not there: {', '.join(missing)}."] if missing else []
    print_table(title, ("task", "images", "accuracy", *TABLE_9), rows, notes=notes)


def _mean_of(name: str, there: int, tasks: int) -> str:
    return f"= {name}, mean of {there}" + (f" of {tasks}" if there < tasks else "")


def _paper(tasks: list[str]) -> list[str]:
    """Average the paper's columns over some tasks."""
    return [f"{sum(column[task] for task in tasks) / len(tasks):.1f}" for column in TABLE_9.values()]


def _told(
    arguments: Arguments, runs: Mapping[str, Run], results: Mapping[str, Any], missing: list[str], means: Means
) -> dict[str, Any]:
    group_of = {task: group for group, tasks in VTAB_GROUPS.items() for task in tasks}
    return {
        "model": arguments.model,
        "root": arguments.root,
        "tasks": [
            {
                "task": task,
                "group": group_of[task],
                "accuracy": result["accuracy"],
                "images": result["images"],
                "run": str(runs[task].folder.path),
                "paper": {name: column[task] for name, column in TABLE_9.items()},
            }
            for task, result in results.items()
        ],
        "missing": missing,
        "groups": dict(means.groups),
        "mean": means.overall,
        "mean_over": means.tasks,
        "complete": means.complete,
    }
