"""Threads, device and ranks of work that computes."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from vitrail.base.notes import Note, logged, unheard
from vitrail.base.numbers import MOST_THREADS, check_whole
from vitrail.base.processor import settle
from vitrail.base.ranks import Ranks, as_device, join


def check_threads(threads: int | None) -> None:
    """Refuse a number of threads that no machine has; None takes torch's own."""
    if threads is not None:
        check_whole("threads", threads, most=MOST_THREADS)


@contextmanager
def computing(threads: int | None, device: str | torch.device, note: Note = logged) -> Iterator[Ranks]:
    """Use N threads inside the block, join the other ranks, if there are any, and avoid instructions that trap."""
    check_threads(threads)
    before = torch.get_num_threads()
    try:
        if threads is not None:
            torch.set_num_threads(threads)
        with join(None if str(device) == "auto" else as_device(device)) as ranks:
            settle(note if ranks.first else unheard)
            yield ranks
    finally:
        if threads is not None:
            torch.set_num_threads(before)
