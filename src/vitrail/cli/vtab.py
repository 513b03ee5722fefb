"""Fine-tune a model on the tasks of VTAB-1k by the paper's rule, and print the accuracies beside the paper's (Table 9).

ROOT holds a folder for each task, such as caltech101, with the lists train800val200.txt and test.txt and the images
that they name. The tasks that are there are run: 384 pixels, 2,500 steps of 512 images at a rate of 0.01, trained on
train800val200, measured on test. Each is a run folder below --out; the same command again resumes where it was stopped,
and keeps what is finished. Under torchrun, ranks share each batch.

Example: vitrail vtab b16.safetensors vtab-1k/ --tasks dtd svhn
"""

from dataclasses import dataclass, fields
from functools import partial
from typing import TYPE_CHECKING, Annotated

from vitrail.cli.names import in_flags
from vitrail.cli.report import Device, Positional, Switch, Weights, flag, parse_size, print_json
from vitrail.cli.tables import print_tables

if TYPE_CHECKING:
    from vitrail.base.ranks import Ranks
    from vitrail.studies.vtab_result import VtabResult
    from vitrail.training.signals import StopSignal


@dataclass(frozen=True, kw_only=True)
class Arguments:
    """Flags of `vitrail vtab`."""

    model: Annotated[str, Positional, Weights, flag("MODEL")]
    """The model to begin with: any file that `vitrail show` reads, or the name of a published model."""
    pull: Switch = False
    """Download the published model that is named, unless it is on this machine already."""
    root: Annotated[str, Positional, flag("ROOT")]
    """The folder with the folders of the tasks."""
    tasks: Annotated[tuple[str, ...], flag("TASK [TASK ...]", "all that are there")] = ()
    """Tasks to run, such as dtd svhn."""
    out: Annotated[str | None, flag("FOLDER", "runs/vtab-MODEL")] = None
    """The folder for the run folders of the tasks."""
    image_size: Annotated[str | None, flag("PIXELS|HxW", "384")] = None
    """Height and width that images are resized to, in pixels."""
    steps: Annotated[int | None, flag("INT", "2500")] = None
    """Updates of the weights, for each task."""
    batch: Annotated[int | None, flag("INT", "512")] = None
    """Images in an update, over all ranks."""
    learning_rate: Annotated[float | None, flag("FLOAT", "0.01")] = None
    """The highest learning rate."""
    seed: int = 0
    """Decides everything that is random."""
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
    num_heads: Annotated[int | None, flag("INT", "that of the file")] = None
    """Attention heads of MODEL, where its file does not state them."""
    architecture: Annotated[str | None, flag("NAME", "that of the file")] = None
    """The model's name in its library, such as timm's, or of a way to prepare images (google, timm, huggingface,
    torchvision, swag, imagenet, clip), where the file does not state it."""
    pickle: Switch = False
    """Allow torch's pickled files, of which only tensors are read."""
    json: Switch = False
    """Write JSON to stdout."""


def run(arguments: Arguments) -> int:
    """Run what is there, and print the table."""
    from vitrail.cli.stoppable import carry_out
    from vitrail.verbs.vtab import VtabRequest, settle_vtab
    from vitrail.verbs.watch import watched

    size = None if arguments.image_size is None else parse_size(arguments.image_size)
    keywords = {field.name: getattr(arguments, field.name) for field in fields(VtabRequest)} | {"image_size": size}
    request = VtabRequest(**keywords)

    def work(ranks: "Ranks", stop: "StopSignal") -> "VtabResult":
        return settle_vtab(request, ranks).carry_out(partial(watched, quiet=not ranks.first, words=in_flags), stop)

    def show(result: "VtabResult") -> None:
        if arguments.json:
            print_json(result.to_dict())
        else:
            print_tables(result.tables(), arguments)

    return carry_out(work, show, threads=arguments.threads, device=arguments.device)
