"""How reports look: tables for people, JSON for machines, numbers that can be read."""

import json
import shutil
import sys
import textwrap
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
from vitrail.cli.names import in_flags

PIPE_WIDTH = 80
"""Columns of a table without a terminal: as much as any terminal shows, and every page."""

MOST_LISTED = 5


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
        widest = max((len(printable(row[number])) for row in rows), default=0)
        table.add_column(
            escape(printable(column)),
            justify="left" if left else "right",
            overflow="fold",
            min_width=min(widest, _width() // 2) if number == 0 else None,  # long values leave names whole
        )
    for row in rows:
        table.add_row(*(escape(printable(cell)) for cell in row))
    console = _Console(width=_width(), height=25, highlight=False)  # without a height, TERM=dumb means 80
    console.print(escape(_filled(title)), style="bold", soft_wrap=True)  # the table's own title wraps where it ends
    console.print(table)
    print_notes(notes)


def print_notes(notes: Sequence[str]) -> None:
    """Write sentences to stdout, settings as flags, in lines that break between words: paths stay whole."""
    for note in notes:
        print(_filled(in_flags(note)))


def _filled(text: str) -> str:
    return textwrap.fill(printable(text), _width(), break_long_words=False, break_on_hyphens=False)


def _width() -> int:
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else PIPE_WIDTH


def value_text(value: Any) -> str:
    """Write a setting or a weight for a table: of a long list the first values, of a number what float32 can tell."""
    if isinstance(value, list) and (len(value) > MOST_LISTED or all(isinstance(one, str) for one in value)):
        more = ["..."] * (len(value) > MOST_LISTED)
        return f"{len(value)}: " + ", ".join([*map(value_text, value[:MOST_LISTED]), *more]) if value else "none"
    if isinstance(value, float):
        return f"{value:.9g}"
    return value if isinstance(value, str) else json.dumps(value)


def counted(number: int | float, unit: str = "") -> str:
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
