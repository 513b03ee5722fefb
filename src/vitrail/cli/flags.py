"""How flags look in `--help`, and sizes as people write them; imports neither torch nor rich."""

import re
from typing import Annotated, Any

import tyro

from vitrail.base.errors import ConfigError


def parse_size(text: str) -> tuple[int, int]:
    """Read 224 or 384x256 as (height, width)."""
    sides = text.lower().split("x")
    if len(sides) > 2 or not all(re.fullmatch(r"0*[1-9][0-9]{0,5}", side) for side in sides):
        raise ConfigError(f"the image size is {text!r}, but must be pixels such as 224, or height x width as 384x256.")
    return int(sides[0]), int(sides[-1])


def flag(metavar: str, default: str | None = None) -> Any:
    """Describe a flag in `--help`: what its value looks like, and what stands for leaving it out."""
    return tyro.conf.arg(metavar=metavar, help_behavior_hint=f"(default: {default})" if default else None)


ImageSize = Annotated[str, flag("PIXELS|HxW")]
"""A flag that takes an image size; read it with `parse_size`."""
Switch = Annotated[bool, tyro.conf.FlagCreatePairsOff]
"""A flag without a value."""
