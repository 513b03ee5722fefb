"""Train a model on images without labels: a folder of photos, any other data, or several of them.

Without flags, everything is chosen from the data by a written rule (docs/pretraining.md), printed, and stored. Out
comes a model without a head, for `vitrail finetune`, `vitrail fewshot` and `vitrail convert`. The same command again
resumes where it was stopped. Under torchrun, ranks share each batch.

Example: vitrail pretrain photos/ more-photos/ --objective mae --minutes 30
"""

from dataclasses import dataclass
from typing import Annotated, Literal

from vitrail.cli.report import Positional, flag
from vitrail.cli.train_flags import ScratchFlags, request_of

Objective = Literal["masked-patch", "mae", "dino", "moco"]
Probe = Literal["auto", "fewshot", "neighbours", "none"]


@dataclass(frozen=True, kw_only=True)
class Arguments(ScratchFlags):
    """Flags of `vitrail pretrain`."""

    data: Annotated[str | None, Positional, flag("[DATA]", "sample, the embedded Fashion-MNIST")] = None
    """A folder of photos, a CSV, shards, arrays: whatever `vitrail data` opens, with labels or without."""
    others: Annotated[tuple[str, ...], Positional, flag("[DATA ...]", "none")] = ()
    """More of the same, to learn from together."""
    objective: Annotated[Objective | None, flag("|".join(Objective.__args__), "masked-patch")] = None
    """What is learned: colours of hidden patches, pixels of removed ones, a teacher's answers, views of one image."""
    probe: Annotated[Probe | None, flag("|".join(Probe.__args__), "auto: fewshot where there are labels")] = None
    """How features are measured during training: least squares on a few labelled images, or the nearest neighbours."""
    out: Annotated[str | None, flag("RUN", "runs/DATA-MODEL-OBJECTIVE, or RUN-extended")] = None
    """The folder of the run."""


def run(arguments: Arguments) -> int:
    """Pre-train, and print the result."""
    from vitrail.cli.trained import train_by
    from vitrail.verbs.pretrain import PretrainRequest

    return train_by(request_of(PretrainRequest, arguments), json=arguments.json)
