"""List every model with its parameters, tokens and multiply-accumulates (MACs) of one image.

With --published: checkpoints that somebody published and that `vitrail pull` gets.

Example: vitrail models --image-size 384 --num-classes 10
Example: vitrail models --published 'dinov2-*'
"""

from dataclasses import dataclass
from typing import Annotated

import vitrail
from vitrail.base.errors import ConfigError
from vitrail.cli.report import ImageSize, Positional, Switch, flag, parse_size, print_json
from vitrail.cli.tables import print_tables


@dataclass(frozen=True, kw_only=True)
class Arguments:
    """Flags of `vitrail models`."""

    names: Annotated[tuple[str, ...], Positional, flag("[MODEL ...]", "all")] = ()
    """Models to list, such as B/16 R50+B/16 R50x1, or patterns such as 'B/*'."""
    image_size: ImageSize = "224"
    """Height and width of the images, in pixels."""
    num_classes: int = 1000
    """Outputs of the last layer; 0 leaves it out."""
    channels: int = 3
    """Channels of the images."""
    published: Switch = False
    """List published checkpoints instead, which have sizes of their own."""
    json: Switch = False
    """Write JSON to stdout."""


def run(arguments: Arguments) -> None:
    """Count and print, or print the catalogue."""
    if arguments.published:
        usual = Arguments()
        if (arguments.image_size, arguments.num_classes, arguments.channels) != (
            usual.image_size,
            usual.num_classes,
            usual.channels,
        ):
            raise ConfigError(
                "published checkpoints have sizes of their own; leave --image-size, --num-classes and --channels out."
            )
        published = vitrail.list_published(arguments.names or "*")
        if arguments.json:
            print_json(published.to_dict())
        else:
            print_tables(published.tables(), arguments)
        return
    models = vitrail.list_models(
        arguments.names or "*",
        image_size=parse_size(arguments.image_size),
        num_classes=arguments.num_classes,
        channels=arguments.channels,
    )
    if arguments.json:
        print_json(models.to_dict())
        return
    print_tables(models.tables(), arguments)
