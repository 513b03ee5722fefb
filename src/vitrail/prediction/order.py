"""Many jobs by several threads, with results in order; imports no torch."""

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Job = TypeVar("Job")
Result = TypeVar("Result")


def by_threads(
    work: Callable[[Job], Result], jobs: Iterable[Job], *, workers: int, start: Callable[[], None] | None = None
) -> Generator[Result, None, None]:
    """Yield the result of every job, in order, while threads work on the next ones: one job waits for each of them.

    Each worker calls `start` first. Decoders, resizing and products of matrices let go of Python's lock, so that
    threads share the work, and nothing is copied between processes.
    """
    pool = ThreadPoolExecutor(workers, "vitrail-predict", initializer=start)
    waiting: deque[Future[Result]] = deque()
    try:
        for job in jobs:
            waiting.append(pool.submit(work, job))
            if len(waiting) > 2 * workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)
