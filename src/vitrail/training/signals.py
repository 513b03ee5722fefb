"""Ctrl-C and SIGTERM ask a run to stop after the step it is in; a second Ctrl-C does not wait."""

import signal
import threading
from types import FrameType
from typing import Any


class StopSignal:
    """Listens while a run is going on."""

    def __init__(self) -> None:
        self.asked = False
        self.number: int | None = None
        self._before: dict[int, Any] = {}

    def __enter__(self) -> "StopSignal":
        """Start to listen; only the main thread can."""
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._ask)
        return self

    def __exit__(self, *_: object) -> None:
        """Give the signals back."""
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _ask(self, number: int, _: FrameType | None) -> None:
        if self.asked and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.asked, self.number = True, number

    @property
    def exit_code(self) -> int:
        """128 and the signal, as shells count: 130 after Ctrl-C, 143 after SIGTERM."""
        return 128 + (self.number or signal.SIGTERM)
