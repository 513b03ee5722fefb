"""Train a model on images without labels: photos in any order, or any other data, one place or several.

Without flags, everything is chosen from the data by a written rule (docs/pretraining.md), printed, and stored. Out
comes a model without a head, for `vitrail finetune`, `vitrail fewshot` and `vitrail convert`. The same command again
resumes where it was stopped. Under torchrun, ranks share each batch.

Example: vitrail pretrain photos/ more-photos/ --objective mae --minutes 30
"""

from dataclasses import dataclass
from functools import partial
from typing import Annotated, Literal

from vitrail.cli.names import in_flags
from vitrail.cli.report import Positional, Switch, flag
from vitrail.cli.train_flags import RULE, Mixer, RunFlags, request_of

Objective = Literal["masked-patch", "mae", "dino", "moco"]
Probe = Literal["auto", "fewshot", "neighbours", "none"]


@dataclass(frozen=True, kw_only=True)
class Arguments(RunFlags):
    """Flags of `vitrail pretrain`."""

    data: Annotated[str | None, Positional, flag("[DATA]", "sample, the embedded Fashion-MNIST")] = None
    """A folder of photos, a CSV, shards, arrays: whatever `vitrail data` opens, with labels or without."""
    others: Annotated[tuple[str, ...], Positional, flag("[DATA ...]", "none")] = ()
    """More of the same, to learn from together."""
    objective: Annotated[Objective | None, flag("|".join(Objective.__args__), "masked-patch")] = None
    """What is learned: colours of hidden patches, pixels of removed ones, a teacher's answers, views of one image."""
    probe: Annotated[Probe | None, flag("|".join(Probe.__args__), "auto: fewshot where there are labels")] = None
    """How features are measured during training: least squares on a few labelled images, or the nearest neighbours."""
    model: Annotated[str | None, flag("MODEL", RULE)] = None
    """A model of `vitrail models`, such as S/16."""
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
    out: Annotated[str | None, flag("RUN", "runs/DATA-MODEL-OBJECTIVE, or RUN-extended")] = None
    """The folder of the run."""
    json: Switch = False
    """Write the result as JSON to stdout."""


def run(arguments: Arguments) -> int:
    """Pre-train, and print the result."""
    from vitrail.cli.stoppable import carry_out
    from vitrail.cli.trained import as_json, print_result
    from vitrail.verbs.pretrain import PretrainRequest
    from vitrail.verbs.settle import conduct_training, stored_execution

    request = request_of(PretrainRequest, arguments)
    return carry_out(
        partial(conduct_training, request, words=in_flags),
        as_json if arguments.json else print_result,
        threads=request.threads,
        device=request.device,
        stored=stored_execution(request),
    )
