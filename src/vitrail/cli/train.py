"""Train a model on a folder of images, or on any other data that `vitrail data` opens.

Without flags, everything is chosen from the data by a written rule (docs/training.md), printed, and stored. The same
command again resumes where it was stopped, and ends with the same weights as a run that was never stopped. Ctrl-C,
SIGTERM and a closed terminal save after the step they meet; the exit code is then 130, 143 or 129. Under torchrun,
ranks share each batch.

Example: vitrail train photos/ --minutes 30
"""

from dataclasses import dataclass
from functools import partial
from typing import Annotated

from vitrail.cli.names import in_flags
from vitrail.cli.report import Positional, Switch, flag
from vitrail.cli.train_flags import RULE, ClassifierFlags, Mixer, request_of


@dataclass(frozen=True, kw_only=True)
class Arguments(ClassifierFlags):
    """Flags of `vitrail train`."""

    data: Annotated[str | None, Positional, flag("[DATA]", "sample, the embedded Fashion-MNIST")] = None
    """A folder of class folders, a CSV, shards, arrays: whatever `vitrail data` opens."""
    model: Annotated[str | None, flag("MODEL", RULE)] = None
    """A model of `vitrail models`, such as S/16, R50+B/16 or R50x1."""
    mixer: Mixer = None
    """How the tokens of a block mix: attention over all, or another mixer (docs/models.md)."""
    channels: Annotated[int | None, flag("INT", "the data's")] = None
    """Channels of the images: 3 makes grey ones coloured, 1 makes coloured ones grey."""
    config: Annotated[str | None, flag("FILE", "none")] = None
    """Run these settings again: the config.json of a run."""
    resume: Annotated[str | None, flag("RUN", "none")] = None
    """Resume the run in this folder, with its own settings."""
    extend: Annotated[str | None, flag("RUN", "none")] = None
    """Train the run in this folder for longer, as a new run that begins with its state: --steps, --epochs or --minutes
    more."""
    out: Annotated[str | None, flag("RUN", "runs/DATA-MODEL, or RUN-extended")] = None
    """The folder of the run."""
    json: Switch = False
    """Write the result as JSON to stdout."""


def run(arguments: Arguments) -> int:
    """Train, and print the result."""
    from vitrail.cli.stoppable import carry_out
    from vitrail.cli.trained import as_json, print_result
    from vitrail.verbs.settle import conduct_training, stored_execution
    from vitrail.verbs.train import TrainRequest

    request = request_of(TrainRequest, arguments)
    return carry_out(
        partial(conduct_training, request, words=in_flags),
        as_json if arguments.json else print_result,
        threads=request.threads,
        device=request.device,
        stored=stored_execution(request),
    )
