"""Threads, device and ranks of work that computes."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from vitrail.base.errors import ConfigError
from vitrail.base.notes import Note, logged, unheard
from vitrail.base.processor import settle
from vitrail.base.ranks import Ranks, join


@contextmanager
def computing(threads: int | None, device: str | torch.device, note: Note = logged) -> Iterator[Ranks]:
    """Use so many threads for a while, join the other ranks, if there are any, and avoid instructions that trap."""
    if threads is not None and threads < 1:
        raise ConfigError(f"threads is {threads}, but must be at least 1.")
    before = torch.get_num_threads()
    try:
        if threads is not None:
            torch.set_num_threads(threads)
        with join(None if str(device) == "auto" else torch.device(device)) as ranks:
            settle(note if ranks.first else unheard)
            yield ranks
    finally:
        if threads is not None:
            torch.set_num_threads(before)
