"""A run for the command line: carried out, then a table or JSON on stdout."""

from functools import partial

from vitrail.cli.names import in_flags
from vitrail.cli.report import print_json, print_table
from vitrail.cli.say import show
from vitrail.cli.stoppable import carry_out
from vitrail.verbs.settle import ScratchRequest, conduct_training, stored_execution
from vitrail.verbs.trained import TrainedRun


def train_by(request: ScratchRequest, *, json: bool) -> int:
    """Train, print the result, and return the exit code."""
    return carry_out(
        partial(conduct_training, request, words=in_flags),
        as_json if json else print_result,
        threads=request.threads,
        device=request.device,
        stored=stored_execution(request),
    )


def as_json(run: TrainedRun) -> None:
    """Write the figures of a run to stdout."""
    print_json({"run": str(run.folder)} | run.to_dict())


def print_result(run: TrainedRun) -> None:
    """Print the figures of the model, the paths of its files, and the next commands."""
    print_table(run.title, ("", "value", "note"), run.rows())
    classifies = run.config.objective.needs_labels
    command = f"predict {run.model_file} IMAGE" if classifies else f"finetune DATA --from {run.model_file}"
    show(f"\nNext: vitrail {command}")
