"""Adapt a model to your images: the backbone in the package, or the paper's way with a larger one.

The model may be any file that `vitrail show` reads; without --from it is the backbone. It gets a new head of zeros, and
its positions are interpolated if the image size changes. Other settings follow from the data and from the size of the
model by a written rule (docs/finetuning.md); rates are tried on a dev split. The same command again resumes where it
was stopped, also in the middle of the sweep.

Example: vitrail finetune photos/
Example: vitrail finetune photos/ --from vit-s16.safetensors --image-size 384
Example: vitrail finetune photos/ --from dinov2-S/14 --pull
"""

from dataclasses import dataclass
from functools import partial
from typing import Annotated

from vitrail.cli.names import in_flags
from vitrail.cli.report import Positional, Switch, Weights, flag
from vitrail.cli.train_flags import RULE, ClassifierFlags, request_of


@dataclass(frozen=True, kw_only=True)
class Arguments(ClassifierFlags):
    """Flags of `vitrail finetune`."""

    data: Annotated[str | None, Positional, flag("[DATA]", "none; needed unless --resume is given")] = None
    """A folder of class folders, a CSV, shards, arrays: whatever `vitrail data` opens."""
    start: Annotated[str | None, Weights, flag("MODEL", "the backbone in the package", name="from")] = None
    """The model to begin with: a file of Vitrail, Google, big_vision, timm, Hugging Face or torchvision, the name of a
    published model, or `backbone`."""
    pull: Switch = False
    """Download the published model that is named, unless it is on this machine already."""
    pickle: Switch = False
    """Allow torch's own files (.pth, .bin), without executing anything in them."""
    num_heads: Annotated[int | None, flag("INT", "that of the file")] = None
    """Attention heads of MODEL, where its file does not state them."""
    architecture: Annotated[str | None, flag("NAME", "that of the file")] = None
    """The model's name in its library, such as timm's, or of a way to prepare images (google, timm, huggingface,
    torchvision, swag, imagenet, clip), where the file does not state it."""
    rates: Annotated[tuple[float, ...], flag("FLOAT [FLOAT ...]", RULE)] = ()
    """Learning rates to try on the dev split; --learning-rate takes one, and tries none."""
    quick: Switch = False
    """Take the middle rate, and try none."""
    runs: Annotated[int | None, flag("INT", "1")] = None
    """Final runs, with seeds that follow --seed; mean and deviation are printed."""
    dev_fraction: Annotated[float | None, flag("FLOAT", RULE)] = None
    """Share of the training images on which rates are tried, where the data has no val beside its test split."""
    frozen: Switch = False
    """Train the head alone; everything else stays as it is."""
    resume: Annotated[str | None, flag("RUN", "none")] = None
    """Resume the fine-tuning in this folder, with its own settings."""
    out: Annotated[str | None, flag("RUN", "runs/DATA-from-MODEL")] = None
    """The folder of the run."""


def run(arguments: Arguments) -> int:
    """Fine-tune, and print the result."""
    from vitrail.cli.stoppable import carry_out
    from vitrail.cli.trained import as_json, print_result
    from vitrail.verbs.finetune import FinetuneRequest, conduct_finetuning, stored_execution

    request = request_of(FinetuneRequest, arguments)
    return carry_out(
        partial(conduct_finetuning, request, words=in_flags),
        as_json if arguments.json else print_result,
        threads=request.threads,
        device=request.device,
        stored=stored_execution(request),
    )
