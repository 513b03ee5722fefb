"""Adapt a model to your images, the paper's way: try learning rates on a dev split, then train on all images.

The model may be any file that `vitrail show` reads: it gets a new head of zeros, and its positions are interpolated if
the image size changes. What is not said follows from the data by a written rule (docs/finetuning.md). The same command
again goes on where it was stopped, also in the middle of the sweep.

Example: vitrail finetune photos/ --from vit-s16.safetensors --image-size 384
"""

from dataclasses import dataclass
from functools import partial
from typing import Annotated

from vitrail.base.ranks import Ranks
from vitrail.cli.report import Positional, Switch, flag, print_json, print_table
from vitrail.cli.say import line
from vitrail.cli.stoppable import carry_out
from vitrail.cli.train_flags import RULE, RunFlags, request_of
from vitrail.cli.watch import print_choices, result_rows, watched
from vitrail.runs.finetune import Estimate, Finetuned, FinetunePlan
from vitrail.runs.folder import RunFolder
from vitrail.runs.series import Row
from vitrail.train.signals import StopSignal
from vitrail.verbs.finetune import FinetuneRequest, settle_finetuning, stored_execution

Tuned = tuple[Finetuned, RunFolder]
"""What came out, and where it lies."""


@dataclass(frozen=True, kw_only=True)
class Arguments(RunFlags):
    """Flags of `vitrail finetune`."""

    data: Annotated[str | None, Positional, flag("[DATA]", "none; needed unless --resume is given")] = None
    """A folder of class folders, a CSV, shards, arrays: whatever `vitrail data` opens."""
    start: Annotated[str | None, flag("MODEL", "none", name="from")] = None
    """The model to begin with: a file of Vitrail, Google, big_vision, timm, Hugging Face or torchvision."""
    pickle: Switch = False
    """Let torch's own files (.pth, .bin) be opened, without executing anything in them."""
    num_heads: Annotated[int | None, flag("INT", "what the file tells")] = None
    """Attention heads of MODEL, where its file does not tell."""
    rates: Annotated[tuple[float, ...], flag("FLOAT [FLOAT ...]", RULE)] = ()
    """Learning rates to try on the dev split; --learning-rate takes one, and tries none."""
    quick: Switch = False
    """Take the middle rate, and try none."""
    runs: Annotated[int | None, flag("INT", "1")] = None
    """Final runs, with seeds that follow --seed; mean and deviation are told."""
    dev_fraction: Annotated[float | None, flag("FLOAT", RULE)] = None
    """Share of the training images on which rates are tried, where the data has no val beside its test split."""
    frozen: Switch = False
    """Train the head alone; everything else stays as it is."""
    resume: Annotated[str | None, flag("RUN", "none")] = None
    """Go on with the fine-tuning in this folder, with its own settings."""
    out: Annotated[str | None, flag("RUN", "runs/DATA-from-MODEL")] = None
    """The folder of the run."""
    json: Switch = False
    """Write the result as JSON to stdout."""


def run(arguments: Arguments) -> int:
    """Fine-tune, and print what came out."""
    request = request_of(FinetuneRequest, arguments)
    return carry_out(
        partial(_finetune, request),
        _as_json if arguments.json else _print_result,
        threads=request.threads,
        device=request.device,
        stored=stored_execution(request),
    )


def _finetune(request: FinetuneRequest, ranks: Ranks, stop: StopSignal) -> Tuned:
    work = settle_finetuning(request, ranks)
    if ranks.first:
        print_choices(work.run())
    if work.enter():
        estimate = work.estimate()
        if ranks.first:
            _print_time(work.plan, estimate)
    return work.carry_out(partial(watched, quiet=not ranks.first), stop), work.folder


def _print_time(plan: FinetunePlan, estimate: Estimate) -> None:
    minutes = f"{estimate.seconds / 60:.0f} minutes" if estimate.seconds >= 90 else f"{estimate.seconds:.0f} seconds"
    tried = plan.trainings - plan.runs
    parts = f"{tried} rates to try and {plan.runs} to train" if tried else f"{plan.runs} to train"
    line(
        f"time         about {minutes}: {parts}, {plan.base.steps} steps of {estimate.step:.2f} s each; "
        "--quick tries no rates, --frozen trains the head alone"
    )


def _as_json(done: Tuned) -> None:
    tuned, folder = done
    print_json({"run": str(folder.path)} | tuned.as_dict())


def _print_result(done: Tuned) -> None:
    tuned, folder = done
    rows = [(row.cell, *_figure(row)) for row in tuned.sweep.rows]
    rows += result_rows(tuned.result, folder)
    if spread := tuned.spread:
        mean = f"{spread['accuracy_mean']:.2%} +- {spread['accuracy_std']:.2%}"
        rows.append((f"{len(spread['accuracies'])} seeds", mean, "mean and standard deviation"))
    print_table("Fine-tuned", ("", "value", "note"), rows)
    print(f"\nNext: vitrail predict {folder.model} IMAGE")


def _figure(row: Row) -> tuple[str, str]:
    if row.diverged is not None:
        return f"diverged at step {row.steps}", "the loss was not finite"
    return f"{row.accuracy:.2%}", f"{row.images} images of {row.split}"
