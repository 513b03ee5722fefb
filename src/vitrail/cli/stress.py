"""Measure what breaks a model: covered, shuffled, corrupted and attacked images, for several models side by side.

The groups of tests: occlusion, shuffle, texture, frequency, corruptions (15 at 5 severities), views (rotation, scale,
exposure), attacks (PGD and a patch), resolution. Every model sees the same pixels, whatever the batch. With --out a
folder gets a page, charts as PNG and SVG, a JSON and a CSV file. Images that cannot be read are reported and left out.
See docs/stress.md.

Example: vitrail stress vit.safetensors resnet.safetensors photos/ --out stressed
Example: vitrail stress model.safetensors photos/ --tests occlusion pgd --images 100
"""

from dataclasses import dataclass
from typing import Annotated

from vitrail.base.errors import ConfigError, InputError
from vitrail.cli.page_flags import PageFlags, page_keywords, print_page
from vitrail.cli.report import Positional, Switch, flag


@dataclass(frozen=True, kw_only=True)
class Arguments(PageFlags):
    """Flags of `vitrail stress`."""

    models: Annotated[tuple[str, ...], Positional, flag("MODEL [MODEL ...] DATA")]
    """Files or folders of weights, of any format, the baseline first; then the data, as for `vitrail evaluate`."""
    tests: Annotated[tuple[str, ...], flag("NAME [...]", "all")] = ("all",)
    """Groups of tests, or single ones, such as occlusion, pgd or gaussian-noise."""
    images: int = 500
    """How many images to draw from the data, at most."""
    severities: Annotated[tuple[str, ...], flag("1..5 [...]", "1 2 3 4 5")] = ("1", "2", "3", "4", "5")
    """Severities of the corruptions."""
    budget: float = 8.0
    """The largest change of a value that PGD may make, in levels of 255."""
    steps: int = 10
    """Steps of an attack."""
    split: Annotated[str | None, flag("NAME", "test, else val, else everything")] = None
    """The split to measure on."""
    all_classes: Switch = False
    """Keep the classes that the data lacks among the answers."""
    batch: int = 64
    """Images that go through a model at once."""
    bootstrap: Annotated[int, flag("INT")] = 1000
    """Resamples behind the intervals of means."""
    seed: int = 0
    """Decides which images are drawn, and every draw of every test."""
    root: Annotated[str | None, flag("FOLDER", "the manifest's own")] = None
    """Where the paths of a CSV or JSON-lines file start from."""


def run(arguments: Arguments) -> None:
    """Stress, write the files, then print."""
    if len(arguments.models) < 2:
        raise InputError("stress needs a model and data: vitrail stress MODEL [MODEL ...] DATA.")
    *models, data = arguments.models

    from vitrail.verbs.stress import stress

    result = stress(
        models,
        data,
        tests=arguments.tests,
        images=arguments.images,
        severities=_severities(arguments.severities),
        budget=arguments.budget,
        steps=arguments.steps,
        split=arguments.split,
        all_classes=arguments.all_classes,
        batch=arguments.batch,
        resamples=arguments.bootstrap,
        seed=arguments.seed,
        root=arguments.root,
        **page_keywords(arguments),
    )
    print_page(result, arguments)


def _severities(words: tuple[str, ...]) -> list[int]:
    for word in words:
        if not word.isdecimal():
            raise ConfigError(f"--severities is given {word!r}, but takes whole numbers from 1 to 5.")
    return [int(word) for word in words]
