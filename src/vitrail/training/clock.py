"""The clock of a run: its speed, without evaluations."""

import time
from collections.abc import Iterator
from contextlib import contextmanager


class Clock:
    """Time and images since the last line, without evaluations."""

    def __init__(self) -> None:
        self.images, self.started = 0, time.perf_counter()

    def read(self) -> dict[str, float]:
        """Return seconds and speed, and start again."""
        seconds = time.perf_counter() - self.started
        rates = {"seconds": seconds, "images_per_second": self.images / seconds}
        self.images, self.started = 0, time.perf_counter()
        return rates

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Do not count the time of the block."""
        before = time.perf_counter()
        yield
        self.started += time.perf_counter() - before
