"""Threads, device and ranks of a verb that computes."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from vitrail.base.errors import ConfigError
from vitrail.base.processor import settle
from vitrail.base.ranks import Ranks, join
from vitrail.cli.say import say


@contextmanager
def computing(threads: int | None, device: str) -> Iterator[Ranks]:
    """Set the threads that were asked for, join the other ranks, if there are any, and avoid what traps."""
    if threads is not None:
        if threads < 1:
            raise ConfigError(f"--threads is {threads}, but must be at least 1.")
        torch.set_num_threads(threads)
    with join(None if device == "auto" else torch.device(device)) as ranks:
        settle(say if ranks.first else lambda _: None)
        yield ranks
