"""SIGTERM and a closed terminal end a command as Ctrl-C does: half-written files are removed, and the code says why.

Signals are also noted: libraries catch what is raised while they are imported, and then fail later for want of a part.
Verbs that train, and the server, listen for themselves while they work. Ranks are ended by torchrun.
"""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

PATIENCE = 4.0
"""Seconds after which a command that is still in the middle of a call to a library ends without tidying up."""
_LISTENED = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]


class Stopped(KeyboardInterrupt):
    """A signal that ends the command; whatever takes care of Ctrl-C takes care of it."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


def signal_number(stop: KeyboardInterrupt) -> int:
    """Return the signal that stopped the command."""
    return stop.number if isinstance(stop, Stopped) else signal.SIGINT


def signal_name(number: int) -> str:
    """Return what a user calls a signal."""
    return "Ctrl-C" if number == signal.SIGINT else signal.Signals(number).name


@contextmanager
def stopped_by_signals(noted: list[int]) -> Iterator[None]:
    """Raise `Stopped` for a signal while the block lasts, and note its number; a second one ends the process at once.

    Ctrl-C is noted too, and raises what it always raises. A signal that is ignored, as nohup does with a closed
    terminal, and one that somebody else listens for are left alone; so is a command outside of the main thread.
    """
    main = threading.current_thread() is threading.main_thread()
    listened = [number for number in _LISTENED if signal.getsignal(number) is signal.SIG_DFL]
    if not main or not listened or "RANK" in os.environ:
        yield
        return

    def stop(number: int, _: object) -> None:
        noted.append(number)
        for each in listened:
            signal.signal(each, signal.SIG_DFL)
        raise Stopped(number)

    def interrupt(number: int, _: object) -> None:
        noted.append(number)
        raise KeyboardInterrupt

    before = {number: signal.getsignal(number) for number in listened}
    for number in listened:
        signal.signal(number, stop)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        before[signal.SIGINT] = signal.signal(signal.SIGINT, interrupt)
    try:
        with _ended_after_patience(listened):
            yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _ended_after_patience(listened: list[int]) -> Iterator[None]:
    """End the process when it has not left the block some seconds after a signal: Python waits for libraries to return.

    The system writes the number of a signal into a pipe at once, whatever the main thread does.
    """
    handlers = {number: signal.getsignal(number) for number in listened}
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    ended = threading.Event()

    def watch() -> None:
        while numbers := os.read(reading, 1):
            number = numbers[0]
            if signal.getsignal(number) in (handlers.get(number), signal.SIG_DFL) and number in handlers:
                if not ended.wait(PATIENCE):
                    os._exit(128 + number)
                return

    before = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        signal.set_wakeup_fd(before)
        os.close(writing)
        thread.join(1.0)
        with suppress(OSError):
            os.close(reading)


def _forget() -> None:
    """Let the signals of a fork, such as those that end a worker, say nothing to its parent."""
    with suppress(ValueError):
        signal.set_wakeup_fd(-1)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
