"""Threads that compute on one core each, beside the threads that torch shares products among.

Threads that share a product wait for the slower of them after each one; threads with work of their own meet only at its
end. With many threads, shares of the work would be too small, so 2 to 4 work this way (docs/log.md).
"""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import cache, partial
from threading import Barrier
from typing import Any

import torch

MOST_SHARING = 4


def may_share(threads: int) -> bool:
    """Return whether threads work by themselves, each on a share, and not together on every product: 2 to 4 do."""
    return 2 <= threads <= MOST_SHARING


def each_alone(threads: int, tasks: Sequence[Callable[[], Any]]) -> list[Any]:
    """Carry out tasks in threads that use one core each, and return their results in order; none may start others.

    They compute in the types that autocast chooses in this thread.
    """
    autocast = partial(torch.autocast, "cpu", torch.get_autocast_dtype("cpu"), enabled=torch.is_autocast_enabled("cpu"))
    started = [_pool(threads).submit(_within, autocast, task) for task in tasks]
    return [task.result() for task in started]


def _within(setting: Callable[[], AbstractContextManager[Any]], task: Callable[[], Any]) -> Any:
    with setting():
        return task()


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


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    """Start threads that compute alone; they stay as long as the process."""
    pool = ThreadPoolExecutor(threads, "vitrail-share", initializer=compute_alone)

    def start(ready: Barrier) -> None:
        for _ in range(threads):
            pool.submit(ready.wait)

    starting(threads, start)
    return pool


if hasattr(os, "register_at_fork"):  # a forked process has none of the threads that its parent started
    os.register_at_fork(after_in_child=_pool.cache_clear)
