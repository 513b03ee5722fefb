"""The clock of a run: how fast it learns, without what is not learning."""

import time
from collections.abc import Iterator
from contextlib import contextmanager


class Clock:
    """Time and images since the last line, without what is not training."""

    def __init__(self) -> None:
        self.images, self.started = 0, time.perf_counter()

    def read(self) -> dict[str, float]:
        """Return seconds and speed, and start again."""
        seconds = time.perf_counter() - self.started
        found = {"seconds": seconds, "images_per_second": self.images / seconds}
        self.images, self.started = 0, time.perf_counter()
        return found

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Do not count what happens here."""
        before = time.perf_counter()
        yield
        self.started += time.perf_counter() - before
