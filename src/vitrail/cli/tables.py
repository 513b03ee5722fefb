"""The tables of a result on the terminal."""

from collections.abc import Sequence
from typing import Any

from vitrail.base.table import Table
from vitrail.cli.names import in_flags
from vitrail.cli.report import print_notes, print_table
from vitrail.cli.say import show


def print_tables(tables: Sequence[Table], arguments: Any, *, notes: Sequence[str] = ()) -> None:
    """Write tables with a blank line between them; notes of a result name settings, and `notes` are our own."""
    for number, table in enumerate(tables):
        sentences = [in_flags(note, type(arguments)) for note in table.notes]
        sentences += notes if number == len(tables) - 1 else ()
        if number and (table.columns or sentences):
            show()
        if table.columns:
            print_table(table.title, table.columns, table.rows, notes=sentences)
        else:
            print_notes(sentences)
