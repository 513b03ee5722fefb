"""Threads, device and ranks of a verb that computes."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from vitrail.base.errors import ConfigError
from vitrail.base.ranks import Ranks, join


@contextmanager
def computing(threads: int | None, device: str) -> Iterator[Ranks]:
    """Set the threads that were asked for, and join the other ranks, if there are any."""
    if threads is not None:
        if threads < 1:
            raise ConfigError(f"--threads is {threads}, but must be at least 1.")
        torch.set_num_threads(threads)
    with join(None if device == "auto" else torch.device(device)) as ranks:
        yield ranks
