"""How flags look in `--help`, and sizes as people write them; imports neither torch nor rich."""

import re
from collections.abc import Mapping
from dataclasses import MISSING, fields
from types import MappingProxyType
from typing import Annotated, Any

import tyro

from vitrail.base.errors import ConfigError

_NONE: Mapping[str, str] = MappingProxyType({})


def parse_size(text: str) -> tuple[int, int]:
    """Read 224 or 384x256 as (height, width)."""
    sides = text.lower().split("x")
    if len(sides) > 2 or not all(re.fullmatch(r"0*[1-9][0-9]{0,5}", side) for side in sides):
        raise ConfigError(f"the image size is {text!r}, but must be pixels such as 224, or height x width as 384x256.")
    return int(sides[0]), int(sides[-1])


def as_flags(sentence: str, arguments: type[Any], renamed: Mapping[str, str] = _NONE) -> str:
    """Write the settings that a sentence names as flags of a verb.

    A setting is named in backticks, as `all_classes` or `split=train`, or is the first word of the sentence. `renamed`
    has the flags of settings that are called otherwise.
    """
    flags = {entry.name: entry.name for entry in fields(arguments) if entry.default is not MISSING} | dict(renamed)

    def flagged(match: re.Match[str]) -> str:
        name, value = match["name"], match["value"]
        if name not in flags:
            return match[0]
        return f"--{flags[name].replace('_', '-')}" + (f" {value}" if value not in ("", None, "True") else "")

    sentence = re.sub(r"^(?P<name>[a-z][a-z0-9_]*)(?P<value>)(?= is )", flagged, sentence)
    return re.sub(r"`(?P<name>[a-z][a-z0-9_]*)(?:=(?P<value>[^`]*))?`", flagged, sentence)


def flag(metavar: str, default: str | None = None) -> Any:
    """Describe a flag in `--help`: what its value looks like, and what stands for leaving it out."""
    return tyro.conf.arg(metavar=metavar, help_behavior_hint=f"(default: {default})" if default else None)


ImageSize = Annotated[str, flag("PIXELS|HxW")]
"""A flag that takes an image size; read it with `parse_size`."""
Switch = Annotated[bool, tyro.conf.FlagCreatePairsOff]
"""A flag without a value."""
