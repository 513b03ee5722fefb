"""A finished run for the command line: a table or JSON on stdout."""

from vitrail.cli.report import print_json, print_table
from vitrail.cli.say import show
from vitrail.verbs.trained import TrainedRun


def as_json(run: TrainedRun) -> None:
    """Write the figures of a run to stdout."""
    print_json({"run": str(run.folder)} | run.to_dict())


def print_result(run: TrainedRun) -> None:
    """Print the figures of the model, the paths of its files, and the next commands."""
    print_table(run.title, ("", "value", "note"), run.rows())
    classifies = run.config.objective.needs_labels
    command = f"predict {run.model_file} IMAGE" if classifies else f"finetune DATA --from {run.model_file}"
    show(f"\nNext: vitrail {command}")
