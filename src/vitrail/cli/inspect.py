"""Look into models: filters, positions, attention, layers, and how much each part of a network matters.

Without --data only the panels that need no images. With it, some images run through each model. Several models are
compared with the first: weights layer by layer, and CKA. With --out a folder gets a page, each panel as PNG, its charts
as SVG too, and its numbers as JSON. An image that cannot be read is reported and skipped. See docs/inside.md.

Example: vitrail inspect model.safetensors --data photos/ --out inside
Example: vitrail inspect before.safetensors after.safetensors --data photos/ --out changed
"""

from dataclasses import dataclass
from typing import Annotated, Literal

from vitrail.cli.page_flags import PageFlags, page_keywords, print_page
from vitrail.cli.report import Positional, flag


@dataclass(frozen=True, kw_only=True)
class Arguments(PageFlags):
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
        **page_keywords(arguments),
    )
    print_page(result, arguments)
    return 0
