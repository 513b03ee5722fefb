"""The output of reports: tables for users, JSON for machines."""

import json
import sys
import textwrap
from collections.abc import Sequence
from typing import Any

from vitrail.base.printable import printable
from vitrail.base.readable import counted as counted
from vitrail.cli.flags import Device as Device
from vitrail.cli.flags import ImageSize as ImageSize
from vitrail.cli.flags import Positional as Positional
from vitrail.cli.flags import Switch as Switch
from vitrail.cli.flags import Weights as Weights
from vitrail.cli.flags import flag as flag
from vitrail.cli.flags import parse_size as parse_size
from vitrail.cli.names import in_flags
from vitrail.cli.say import show
from vitrail.cli.streams import screen_width

PIPE_WIDTH = 80
"""Columns of a table without a terminal: as much as any terminal shows, and every page."""


def print_json(value: Any) -> None:
    """Write one JSON value to stdout."""
    show(json.dumps(value, indent=2))


def print_table(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], *, notes: Sequence[str] = ()
) -> None:
    """Write a table to stdout: names and notes to the left, numbers to the right."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(header_style="bold", box=None)
    table.pad_edge = False
    widths = [max((len(printable(row[number])) for row in rows), default=0) for number in range(len(columns))]
    words = [max(map(len, printable(column).split()), default=0) for column in columns]  # headings break between them
    needed = [min(max(sizes), _width() // 4) + 2 for sizes in zip(widths, words, strict=True)]  # as long values do
    room = _width() - sum(needed[1:])
    names = min(widths[0], max(room, _width() // 8), _width() // 2) if widths else 0
    for number, column in enumerate(columns):
        left = number == 0 or column in ("note", "value")
        table.add_column(
            escape(printable(column)),
            justify="left" if left else "right",
            overflow="fold",
            min_width=names if number == 0 else None,  # long values leave names whole
        )
    for row in rows:
        table.add_row(*(escape(printable(cell)) for cell in row))
    console = Console(width=_width(), height=25, highlight=False)  # without a height, TERM=dumb means 80
    console.print(escape(_filled(title)), style="bold", soft_wrap=True)  # the table's own title wraps where it ends
    console.print(table)
    print_notes(notes)


def print_notes(notes: Sequence[str]) -> None:
    """Write sentences to stdout, settings as flags, in lines that break between words: paths stay whole."""
    for note in notes:
        show(_filled(in_flags(note)))


def _filled(text: str) -> str:
    return textwrap.fill(printable(text), _width(), break_long_words=False, break_on_hyphens=False)


def _width() -> int:
    return screen_width() if sys.stdout.isatty() else PIPE_WIDTH
