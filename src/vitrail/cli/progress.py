"""How far long work is: a bar on a terminal, a line now and then elsewhere, always on stderr."""

import sys
import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

from vitrail.base.printable import line

Step = TypeVar("Step")

EVERY = 10.0  # seconds between lines where there is no terminal; short work says nothing
REFRESH = 0.1  # seconds between updates of a bar


def progress(steps: Iterable[Step], *, total: int, title: str) -> Iterator[Step]:
    """Pass the steps on, and tell a person how many of `total` are done and how long the rest takes."""
    return (_bar if sys.stderr.isatty() else _lines)(steps, total, title)


def _bar(steps: Iterable[Step], total: int, title: str) -> Iterator[Step]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task(title, total=total)
        told = time.monotonic()
        done = 0
        for step in steps:
            yield step
            done += 1
            if (now := time.monotonic()) - told >= REFRESH:
                shown.update(task, completed=done)
                told = now
        shown.update(task, completed=done)


def _lines(steps: Iterable[Step], total: int, title: str) -> Iterator[Step]:
    began = told = time.monotonic()
    for done, step in enumerate(steps, start=1):
        yield step
        if (now := time.monotonic()) - told >= EVERY:
            left = (now - began) / done * max(total - done, 0)
            line(f"{title}: {done:,} of {total:,} ({done / total:.0%}), {left:.0f} s left")
            told = now
