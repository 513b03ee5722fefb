"""Calls of our own program (`runtime/native`): how many threads one has, and what it means when it returns nothing."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from vitrail.base.errors import CheckpointError

_team = threading.local()


@contextmanager
def team_of(threads: int) -> Iterator[None]:
    """Let parts that are called in this thread have a team of threads, whatever torch has."""
    _team.threads = threads
    try:
        yield
    finally:
        del _team.threads


def team() -> int:
    """Return how many threads a part has that is called in this thread."""
    return getattr(_team, "threads", torch.get_num_threads())


def there(result: int | None) -> int:
    """Return the result of a call, or raise if the program had no memory."""
    if not result:
        raise CheckpointError("there is not enough memory for the engine native; use smaller batches or another model.")
    return result
