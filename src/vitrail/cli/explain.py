"""Show what a model looked at: maps laid over your own images, and a measure of whether they can be trusted.

Each map is measured by covering the image in its order (deletion) and uncovering it (insertion), beside random maps.
With --out a folder gets a picture and the map of each image, a page and a JSON file. An image that cannot be read is
reported and skipped: the exit code is 1 only if none could be read. See docs/inside.md.

Example: vitrail explain model.safetensors photo.jpg --out explained
Example: vitrail explain model.safetensors photos/ --compare
"""

from dataclasses import dataclass
from typing import Annotated, Literal

from vitrail.base.errors import InputError
from vitrail.cli.page_flags import PageFlags, page_keywords, print_page
from vitrail.cli.report import Positional, Switch, Weights, flag
from vitrail.cli.streams import read_stdin

MethodName = Literal[
    "auto", "attention", "rollout", "gradient-attention", "integrated-gradients", "occlusion", "grad-cam"
]


@dataclass(frozen=True, kw_only=True)
class Arguments(PageFlags):
    """Flags of `vitrail explain`."""

    model: Annotated[str, Positional, Weights, flag("MODEL")]
    """A file or folder of weights, of any format, or the name of a published model."""
    images: Annotated[tuple[str, ...], Positional, flag("IMAGE-OR-FOLDER [...]")]
    """The images, as for `vitrail predict`."""
    method: MethodName = "auto"
    """How maps are made; auto chooses by size and kind of the model."""
    label: Annotated[str | None, flag("NAME", "the most probable ones", name="class")] = None
    """The class to explain."""
    top: int = 3
    """How many of the most probable classes to explain; --compare explains the first."""
    layer: int = -1
    """With --method attention: the block, from 0; negative ones count from the last."""
    head: Annotated[int | None, flag("INT", "the mean over heads")] = None
    """With --method attention: the head, from 0."""
    steps: int = 32
    """With --method integrated-gradients: points on the path from the mean colour to the image."""
    compare: Switch = False
    """Use every method that fits the model, and compare them."""
    points: int = 17
    """Places at which deletion and insertion are measured; 0 leaves that out."""
    seed: int = 0
    """Decides the random maps."""


def run(arguments: Arguments) -> int:
    """Explain, write the files, then print."""
    if not arguments.images:
        raise InputError("no images are given; name files, folders, patterns, @LIST or - for stdin behind the model.")

    from vitrail.verbs.explain import explain

    result = explain(
        arguments.model,
        list(arguments.images),
        method=arguments.method,
        label=arguments.label,
        top=arguments.top,
        layer=arguments.layer,
        head=arguments.head,
        steps=arguments.steps,
        compare=arguments.compare,
        points=arguments.points,
        seed=arguments.seed,
        stdin=read_stdin,
        **page_keywords(arguments),
    )
    print_page(result, arguments)
    return int(not result.images)
