"""Ctrl-C, SIGTERM and a closed terminal ask a run to stop after the step it is in; a second Ctrl-C does not wait.

Only a step waits: before and after training there is nothing to save, and a signal interrupts at once. So it does while
a batch is awaited, which may never come from a process that is stopped or a disk that hangs: nothing is half done then.
"""

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from types import FrameType
from typing import Any, TypeVar

Batch = TypeVar("Batch")

PATIENCE = 3.0
"""Seconds that one of several ranks still waits for its batch: the others may need it to save together."""
_SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]


class Interruption(BaseException):
    """A stop at a point where nothing is half done."""


class StopSignal:
    """Listens for signals during a run."""

    def __init__(self) -> None:
        self.requested = False
        self.number: int | None = None
        self._since = 0.0
        self._patience: float | None = 0.0
        """Seconds until a signal interrupts; None while it is left to the loop to stop."""
        self._timer: threading.Timer | None = None
        self._before: dict[int, Any] = {}

    def __enter__(self) -> "StopSignal":
        """Start to listen; only the main thread can. Under nohup, a terminal may be closed."""
        if threading.current_thread() is threading.main_thread():
            for number in _SIGNALS:
                if number == signal.SIGINT or signal.getsignal(number) is not signal.SIG_IGN:
                    self._before[number] = signal.signal(number, self._request)
        return self

    def __exit__(self, *_: object) -> None:
        """Restore the handlers."""
        if self._timer is not None:
            self._timer.cancel()
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def awaited(self, batches: Iterator[Batch], *, alone: bool = True) -> Iterator[Batch]:
        """Yield the batches; a signal while one is awaited raises `Interruption`, a little later with several ranks."""
        while True:
            with self._patient(0.0 if alone else PATIENCE):
                self._interrupt()
                batch = next(batches, None)
            if batch is None:
                return
            yield batch

    def deferred(self) -> AbstractContextManager[None]:
        """Do not interrupt the block, which checks `requested` itself."""
        return self._patient(None)

    @contextmanager
    def _patient(self, seconds: float | None) -> Iterator[None]:
        before, self._patience = self._patience, seconds
        try:
            yield
        finally:
            self._patience = before

    def _request(self, number: int, _: FrameType | None) -> None:
        if self.requested and number == signal.SIGINT:
            raise KeyboardInterrupt
        if self.number is None:
            self._since = time.monotonic()
        self.requested, self.number = True, self.number or number
        self._interrupt()

    def _interrupt(self) -> None:
        """Raise after a signal, or start a timer for when patience ends."""
        if self.number is None or self._patience is None:
            return
        left = self._since + self._patience - time.monotonic()
        if left <= 0:
            raise Interruption
        main = threading.main_thread().ident
        if self._timer is None and signal.SIGTERM in self._before and main is not None:
            self._timer = threading.Timer(left, signal.pthread_kill, (main, signal.SIGTERM))
            self._timer.daemon = True
            self._timer.start()

    @property
    def exit_code(self) -> int:
        """128 and the signal, as shells count: 130 after Ctrl-C, 143 after SIGTERM."""
        return 128 + (self.number or signal.SIGTERM)
