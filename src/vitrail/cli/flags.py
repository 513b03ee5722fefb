"""What a field of a verb's `Arguments` says beside its type, and sizes as people write them.

Imports neither torch nor rich.
"""

import re
from dataclasses import dataclass
from typing import Annotated, Literal

from vitrail.base.errors import ConfigError


def parse_size(text: str) -> tuple[int, int]:
    """Read 224 or 384x256 as (height, width)."""
    sides = text.lower().split("x")
    if len(sides) > 2 or not all(re.fullmatch(r"0*[1-9][0-9]{0,5}", side) for side in sides):
        raise ConfigError(f"the image size is {text!r}, but must be pixels such as 224, or height x width as 384x256.")
    return int(sides[0]), int(sides[-1])


@dataclass(frozen=True)
class Flag:
    """How a field looks in `--help` and in messages."""

    metavar: str
    """What its value looks like."""
    default: str | None = None
    """What stands for leaving it out; None takes the field's own default."""
    name: str | None = None
    """What is typed after the dashes; None takes the field's name."""


def flag(metavar: str, default: str | None = None, *, name: str | None = None) -> Flag:
    """Describe a field: what its value looks like, what stands for leaving it out, and another name than its own."""
    return Flag(metavar, default, name)


Positional = "positional"
"""Marks a field whose value is given by its place, without a flag: `Annotated[str, Positional, flag("DATA")]`."""


ImageSize = Annotated[str, flag("PIXELS|HxW")]
"""A flag that takes an image size; read it with `parse_size`."""
Switch = bool
"""A flag without a value."""
Device = Literal["auto", "cpu", "cuda", "mps"]
"""Where to compute; the same as in `runs/config.py`, which imports torch."""
