"""Train a model on a folder of images, or on any other data that `vitrail data` opens.

Without flags, everything is chosen from the data by a written rule (docs/training.md), printed, and stored. The same
command again resumes where it was stopped, and ends with the same weights as a run that was never stopped. Ctrl-C,
SIGTERM and a closed terminal save after the step they meet; the exit code is then 130, 143 or 129. Under torchrun,
ranks share each batch.

Example: vitrail train photos/ --minutes 30
"""

from dataclasses import dataclass
from typing import Annotated

from vitrail.cli.report import Positional, flag
from vitrail.cli.train_flags import ClassifierFlags, ScratchFlags, request_of


@dataclass(frozen=True, kw_only=True)
class Arguments(ScratchFlags, ClassifierFlags):
    """Flags of `vitrail train`."""

    data: Annotated[str | None, Positional, flag("[DATA]", "sample, the embedded Fashion-MNIST")] = None
    """A folder of class folders, a CSV, shards, arrays: whatever `vitrail data` opens."""
    out: Annotated[str | None, flag("RUN", "runs/DATA-MODEL, or RUN-extended")] = None
    """The folder of the run."""


def run(arguments: Arguments) -> int:
    """Train, and print the result."""
    from vitrail.cli.trained import train_by
    from vitrail.verbs.train import TrainRequest

    return train_by(request_of(TrainRequest, arguments), json=arguments.json)
