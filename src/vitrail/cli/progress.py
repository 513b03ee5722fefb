"""How far long work is: a bar on a terminal, a line now and then elsewhere, always on stderr."""

import sys
import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

from vitrail.base.printable import line

Step = TypeVar("Step")

EVERY = 10.0  # seconds between lines where there is no terminal; short work prints nothing
REFRESH = 0.1  # seconds between updates of a bar


def progress(steps: Iterable[Step], *, total: int, title: str) -> Iterator[Step]:
    """Yield the steps, and report how many of `total` are done and how long the rest takes."""
    return (_bar if sys.stderr.isatty() else _lines)(steps, total, title)


def _bar(steps: Iterable[Step], total: int, title: str) -> Iterator[Step]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task(title, total=total)
        last = time.monotonic()
        count = 0
        for step in steps:
            yield step
            count += 1
            if (now := time.monotonic()) - last >= REFRESH:
                shown.update(task, completed=count)
                last = now
        shown.update(task, completed=count)


def _lines(steps: Iterable[Step], total: int, title: str) -> Iterator[Step]:
    began = last = time.monotonic()
    for count, step in enumerate(steps, start=1):
        yield step
        if (now := time.monotonic()) - last >= EVERY:
            left = (now - began) / count * max(total - count, 0)
            line(f"{title}: {count:,} of {total:,} ({count / total:.0%}), {left:.0f} s left")
            last = now
