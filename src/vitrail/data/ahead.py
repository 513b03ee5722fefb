"""The next batch, made by a thread of its own while the last one is computed with: without worker processes.

Reading and augmenting takes one core; without this the others wait. A batch depends on its number alone, so nothing
else changes. One batch is made ahead, which is the memory that it costs. With a single thread there is no core that
waits, and batches are made when they are asked for.
"""

from collections.abc import Callable, Iterator, Sequence
from queue import SimpleQueue
from threading import Barrier, Event, Semaphore, Thread
from typing import TypeVar

from vitrail.base.alone import compute_alone, starting

PATIENCE = 2.0
"""Seconds to wait for a batch that is not needed any more."""
Item = TypeVar("Item")


def made_ahead(make: Callable[[int], Item], numbers: Sequence[int]) -> Iterator[Item]:
    """Yield what `make` makes of each number, in order; the next is made meanwhile, and errors raised in place.

    The thread is a daemon: a file that never answers does not keep a process that is to end.
    """
    items: SimpleQueue[tuple[Item | None, BaseException | None]] = SimpleQueue()
    permits, ended = Semaphore(2), Event()

    def work(ready: Barrier) -> None:
        compute_alone()
        ready.wait()
        for number in numbers:
            permits.acquire()
            if ended.is_set():
                return
            try:
                items.put((make(number), None))
            except BaseException as error:  # raised by the caller
                items.put((None, error))
                return

    threads: list[Thread] = []

    def start(ready: Barrier) -> None:
        threads.append(Thread(target=work, args=(ready,), name="vitrail-ahead", daemon=True))
        threads[0].start()

    starting(1, start)
    try:
        for _ in numbers:
            item, error = items.get()
            if error is not None:
                raise error
            yield item  # type: ignore[misc]  # without an error there is an item
            permits.release()
    finally:
        ended.set()
        permits.release()
        threads[0].join(PATIENCE)
