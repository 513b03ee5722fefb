"""How reports look: tables for people, JSON for machines, numbers that can be read."""

import json
import re
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import tyro
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from vitrail.base.errors import ConfigError
from vitrail.base.printable import printable
from vitrail.model.patches import Size


def parse_size(text: str) -> Size:
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


def print_json(value: Any) -> None:
    """Write one JSON value to stdout."""
    print(json.dumps(value, indent=2))


def print_table(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], *, notes: Sequence[str] = ()
) -> None:
    """Write a table to stdout: names and notes to the left, numbers to the right."""
    table = Table(header_style="bold", box=None)
    table.pad_edge = False
    for number, column in enumerate(columns):
        left = number == 0 or column in ("note", "value")
        table.add_column(escape(printable(column)), justify="left" if left else "right", overflow="fold")
    for row in rows:
        table.add_row(*(escape(printable(cell)) for cell in row))
    wide = None if sys.stdout.isatty() else 10_000  # a pipe has no edge to wrap at
    console = Console(width=wide, highlight=False)
    console.print(escape(printable(title)), style="bold")  # not the table's own title, which wraps where the table ends
    console.print(table)
    for note in notes:
        console.print(escape(printable(note)))


def counted(number: float, unit: str = "") -> str:
    """Write 86567656 as 86.57 M."""
    for size, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:.2f} {letter}{unit}"
    return f"{number:.0f} {unit}".rstrip()


def in_bytes(number: float) -> str:
    """Write bytes with binary units."""
    for size, name in ((2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if number >= size:
            return f"{number / size:.2f} {name}"
    return f"{number:.0f} B"
