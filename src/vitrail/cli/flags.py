"""Descriptions of the fields of a verb's `Arguments`, and sizes as users write them.

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
    """The placeholder of its value."""
    default: str | None = None
    """The text of its default; None takes the field's own default."""
    name: str | None = None
    """The name after the dashes; None takes the field's name."""


def flag(metavar: str, default: str | None = None, *, name: str | None = None) -> Flag:
    """Describe a field: the placeholder of its value, the text of its default, and another name than its own."""
    return Flag(metavar, default, name)


Positional = "positional"
"""Marks a field that is positional, without a flag: `Annotated[str, Positional, flag("DATA")]`."""

Weights = "weights"
"""Marks a field that is a file or folder of weights, or the name of a published model, which --pull gets first."""

ImageSize = Annotated[str, flag("PIXELS|HxW")]
"""A flag that takes an image size; read it with `parse_size`."""
Switch = bool
"""A flag without a value."""
Device = Literal["auto", "cpu", "cuda", "mps"]
"""Where to compute; the same as in `runs/config.py`, which imports torch."""
