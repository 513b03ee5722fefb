"""How reports look: tables for people, JSON for machines, numbers that can be read."""

import json
import sys
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from vitrail.base.printable import printable
from vitrail.cli.flags import ImageSize as ImageSize
from vitrail.cli.flags import Positional as Positional
from vitrail.cli.flags import Switch as Switch
from vitrail.cli.flags import flag as flag
from vitrail.cli.flags import parse_size as parse_size


class _Console(Console):
    """A console that leaves a closed pipe to `main`: whoever read our output has seen enough."""

    def on_broken_pipe(self) -> None:
        """Raise it again; rich would end the program with code 1."""
        raise BrokenPipeError


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
    console = _Console(width=wide, highlight=False)
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
