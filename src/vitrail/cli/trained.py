"""A finished run for the command line: a table or JSON on stdout."""

from vitrail.cli.report import print_json, print_table
from vitrail.cli.say import show
from vitrail.verbs.trained import TrainedRun


def as_json(run: TrainedRun) -> None:
    """Write the figures of a run to stdout."""
    print_json({"run": str(run.folder)} | run.to_dict())


def print_result(run: TrainedRun) -> None:
    """Print how good the model is, where everything lies, and what to type next."""
    print_table(run.title, ("", "value", "note"), run.rows())
    show(f"\nNext: vitrail predict {run.model_file} IMAGE")
