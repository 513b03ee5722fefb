"""The frame of verbs that train: threads, device, ranks, and a signal that stops and saves."""

from collections.abc import Iterator
from contextlib import contextmanager

from vitrail.base.notes import Note
from vitrail.base.printable import line
from vitrail.base.ranks import Ranks
from vitrail.runs.execution import Device, Execution
from vitrail.runs.folder import RUN_LOCK, RunFolder
from vitrail.training.endings import StoppedError
from vitrail.training.signals import Interruption, StopSignal
from vitrail.verbs.computing import computing
from vitrail.verbs.watch import Words

STOPPED = "stopped; the same command resumes."


@contextmanager
def training_frame(
    threads: int | None, device: Device | None, stored: Execution | None, words: Words = str
) -> Iterator[tuple[Ranks, StopSignal]]:
    """Join the other ranks and listen for signals; threads and device default to a stored run's own."""
    before, stop = stored or Execution(), StopSignal()
    threads = before.threads if threads is None else threads
    try:
        with stop, computing(threads, device or before.device, note=_to_stderr(words)) as ranks:
            yield ranks, stop
    except Interruption:
        raise StoppedError(STOPPED) from None


def set_aside(folder: RunFolder, ranks: Ranks, note: Note, lock: str = RUN_LOCK) -> None:
    """Free the name of a folder for a run that is to begin again; every rank calls it."""

    def rename() -> int:
        if sentence := folder.set_aside(lock):
            note(sentence)
        return 0

    ranks.follow(rename)


def _to_stderr(words: Words) -> Note:
    return lambda sentence: line(f"vitrail: {words(sentence)}")
