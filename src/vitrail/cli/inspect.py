"""Look into models: filters, positions, attention, layers, and how much each part of a network matters.

Without --data only the panels that need no images. With it, some images run through each model. Several models are
compared with the first: weights layer by layer, and CKA. With --out a folder gets a page, each panel as PNG and SVG,
and its numbers as JSON. An image that cannot be read is reported and skipped. See docs/inside.md.

Example: vitrail inspect model.safetensors --data photos/ --out inside
Example: vitrail inspect before.safetensors after.safetensors --data photos/ --out changed
"""

from dataclasses import dataclass
from typing import Annotated, Literal

from vitrail.cli.model_file import FileFlags, hints
from vitrail.cli.names import in_flags
from vitrail.cli.progress import progress
from vitrail.cli.report import Device, Positional, Switch, flag, print_json
from vitrail.cli.say import say
from vitrail.cli.tables import print_tables


@dataclass(frozen=True, kw_only=True)
class Arguments(FileFlags):
    """Flags of `vitrail inspect`."""

    models: Annotated[tuple[str, ...], Positional, flag("MODEL [MODEL ...]")]
    """Files or folders of weights, of any format; up to six."""
    data: Annotated[str | None, flag("DATA", "none")] = None
    """Images: a folder of class folders, a CSV, shards, arrays: whatever `vitrail data` opens."""
    split: Annotated[str | None, flag("NAME", "test, else val, else everything")] = None
    """Which part of the data to take."""
    root: Annotated[str | None, flag("FOLDER", "the manifest's own")] = None
    """Where the paths of a CSV or JSON-lines file start from."""
    images: int = 128
    """How many images to look at, evenly chosen."""
    layers: Annotated[tuple[int, ...] | None, flag("INT [...]", "all")] = None
    """Blocks whose attention is looked at, from 0; negative ones count from the last."""
    heads: Annotated[tuple[int, ...] | None, flag("INT [...]", "all")] = None
    """Heads whose attention is looked at, from 0."""
    examples: int = 6
    """How many images to show with the attention of all blocks."""
    importance: Literal["auto", "accuracy", "change", "none"] = "auto"
    """How to measure what is lost without each branch; auto takes accuracy where the data has the model's classes."""
    importance_images: int = 64
    """How many of the images to measure that on."""
    out: Annotated[str | None, flag("FOLDER", "none")] = None
    """Write a page, pictures and JSON files."""
    force: Switch = False
    """Let --out write into a folder that holds other files."""
    labels: Annotated[str | None, flag("FILE", "the model's own")] = None
    """Names of the classes: a line for each, or a JSON list, in the order of the model's outputs."""
    json: Switch = False
    """Write JSON to stdout."""
    pickle: Switch = False
    """Let torch's pickled files be opened, of which only tensors are read."""
    threads: Annotated[int | None, flag("INT", "torch's own choice")] = None
    """Threads for computing on the CPU."""
    device: Device = "auto"
    """Where to compute; auto takes a GPU if there is one."""


def run(arguments: Arguments) -> int:
    """Inspect, write the files, then print."""
    from vitrail.verbs.inspect import inspect

    result = inspect(
        list(arguments.models),
        data=arguments.data,
        split=arguments.split,
        root=arguments.root,
        images=arguments.images,
        layers="all" if arguments.layers is None else arguments.layers,
        heads="all" if arguments.heads is None else arguments.heads,
        examples=arguments.examples,
        importance=arguments.importance,
        importance_images=arguments.importance_images,
        labels=arguments.labels,
        out=arguments.out,
        force=arguments.force,
        pickle=arguments.pickle,
        threads=arguments.threads,
        device=arguments.device,
        progress=progress,
        note=lambda sentence: say(in_flags(sentence, Arguments)),
        **hints(arguments),
    )
    if "page" in result.files:
        say(f"the page is {result.files['page']}; open it in a browser.")
    if arguments.json:
        print_json(result.to_dict())
    else:
        print_tables(result.tables(), arguments)
    return 0
