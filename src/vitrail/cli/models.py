"""List every model with its parameters, tokens and multiply-accumulates (MACs) of one image.

Example: vitrail models --image-size 384 --num-classes 10
"""

import dataclasses
from dataclasses import dataclass
from typing import Annotated, Any

from vitrail.base.errors import GridError
from vitrail.cli.report import ImageSize, Positional, Switch, flag, parse_size, print_json, print_table
from vitrail.model.build import configure
from vitrail.model.cost import cost
from vitrail.model.variants import NAMES


@dataclass(frozen=True, kw_only=True)
class Arguments:
    """Flags of `vitrail models`."""

    names: Annotated[tuple[str, ...], Positional, flag("[MODEL ...]", "all")] = ()
    """Models to list, such as B/16 R50+B/16 R50x1."""
    image_size: ImageSize = "224"
    """Height and width of the images, in pixels."""
    num_classes: int = 1000
    """Outputs of the last layer; 0 leaves it out."""
    channels: int = 3
    """Channels of the images."""
    json: Switch = False
    """Write JSON to stdout."""


def run(arguments: Arguments) -> None:
    """Count and print."""
    size = parse_size(arguments.image_size)
    rows: list[dict[str, Any]] = []
    misfits = []
    for name in arguments.names or NAMES:
        try:
            config = configure(name, image_size=size, num_classes=arguments.num_classes, channels=arguments.channels)
        except GridError:
            if arguments.names:
                raise
            misfits.append(name)
            continue
        rows.append({"name": name} | dataclasses.asdict(cost(config)))
    if not rows:
        raise GridError(f"no model has patches that divide {size[0]}x{size[1]} pixels; choose another image size.")
    if arguments.json:
        print_json({"image_size": size, "num_classes": arguments.num_classes, "models": rows, "misfits": misfits})
        return
    notes = [f"Not listed, since their patches do not divide {size[0]}x{size[1]}: {', '.join(misfits)}."] * bool(
        misfits
    )
    print_table(
        f"Models at {size[0]}x{size[1]} pixels with {arguments.num_classes} classes",
        ("model", "parameters", "millions", "tokens", "GMACs"),
        [
            (
                row["name"],
                f"{row['parameters']:,}",
                f"{row['parameters'] / 1e6:.2f}",
                str(row["tokens"] or "-"),
                f"{row['macs'] / 1e9:.2f}",
            )
            for row in rows
        ],
        notes=notes,
    )
