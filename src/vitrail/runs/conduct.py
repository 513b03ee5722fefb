"""One run from its settings to its result, wherever it was stopped before."""

import time
from functools import partial
from typing import Protocol, runtime_checkable

from vitrail.runs.config import differences
from vitrail.runs.finish import finish
from vitrail.runs.folder import claimed
from vitrail.runs.result import Result
from vitrail.runs.train import Run
from vitrail.training.signals import StopSignal


@runtime_checkable
class Watching(Protocol):
    """Somebody who wants to know how a run goes."""

    def start(self, step: int) -> None:
        """Hear from which step the run continues."""

    def note(self, sentence: str) -> None:
        """Hear something besides."""

    def __call__(self, step: int, values: dict[str, float]) -> None:
        """Hear the measurements of a step."""


def conduct(run: Run, watching: Watching, stop: StopSignal) -> Result:
    """Train from the newest checkpoint of the run's folder to the end, and return the figures; every rank calls it.

    A run that is finished says again what it said. A stop is `StoppedError`.
    """
    if is_finished(run):
        return run.folder.read_result()
    with claimed(run.folder.claim(), run.ranks, partial(run.folder.enter, run.config)):
        loop = run.loop(watch=watching, stop=stop)
        try:
            for note in loop.keeper.load(loop.state, run.ranks):
                watching.note(note)
            if run.ranks.first:
                loop.journal.rewind(loop.state.progress.step)
            if loop.pacer is not None:
                loop.pacer.begin(loop.state.progress.step, _spent(run, loop.state.progress.seconds))
            watching.start(loop.state.progress.step)
            loop.run()
            return finish(run, loop)
        finally:
            loop.journal.close()


def is_finished(run: Run) -> bool:
    """Tell whether this run is complete."""
    return run.folder.finished and not differences(run.config, run.folder.read_config())


def _spent(run: Run, stored: float) -> float:
    """Return the seconds that a run with minutes has had: before it was stopped, and before it begins now."""
    return stored + (0.0 if run.began is None else time.monotonic() - run.began)
