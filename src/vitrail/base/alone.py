"""Threads that compute on one core each, beside the threads that torch shares products among."""

from collections.abc import Callable
from threading import Barrier

import torch


def compute_alone() -> None:
    """Use one core in this thread; torch's first query would otherwise change the default of all threads."""
    torch.get_num_threads()
    torch.set_num_threads(1)


def starting(threads: int, start: Callable[[Barrier], None]) -> None:
    """Start threads that compute alone, and leave the number of threads of this one, and of later ones, as it is.

    `start` gets a barrier that all of them, after `compute_alone`, and nobody else must reach.
    """
    before, ready = torch.get_num_threads(), Barrier(threads + 1)
    start(ready)
    ready.wait()
    torch.set_num_threads(before)  # later threads would start with the number that a thread has set
