"""One run from its settings to its result, wherever it was stopped before."""

import time
from functools import partial
from typing import Protocol, runtime_checkable

from vitrail.base.container import open_container
from vitrail.base.errors import CheckpointError
from vitrail.runs.extend import adopt
from vitrail.runs.finish import finish
from vitrail.runs.folder import claimed
from vitrail.runs.result import Result
from vitrail.runs.skipped import check_skipped
from vitrail.runs.train import Run
from vitrail.training.loop import Loop
from vitrail.training.signals import StopSignal


@runtime_checkable
class Watching(Protocol):
    """A watcher of a run's progress."""

    def start(self, step: int) -> None:
        """Take the step from which the run continues."""

    def note(self, sentence: str) -> None:
        """Take a note for the user."""

    def __call__(self, step: int, values: dict[str, float]) -> None:
        """Take the measurements of a step."""


def conduct(run: Run, watching: Watching, stop: StopSignal) -> Result:
    """Train from the newest checkpoint of the run's folder to the end, and return the figures; every rank calls it.

    A finished run returns its stored figures. A stop raises `StoppedError`.
    """
    if is_finished(run):
        return finished_result(run)
    with claimed(run.folder.claim(), run.ranks, partial(run.folder.enter, run.config)):
        loop = run.loop(watch=watching, stop=stop)
        try:
            for note in _restore(run, loop):
                watching.note(note)
            watching.start(loop.state.progress.step)
            loop.run()
            return finish(run, loop)
        finally:
            loop.journal.close()


def is_finished(run: Run) -> bool:
    """Return whether this run is complete."""
    return run.folder.finished and run.folder.read_result().run == run.config.identity


def finished_result(run: Run) -> Result:
    """Return the figures of a complete run; a model file that does not belong to them is refused."""
    result, path = run.folder.read_result(), run.folder.model
    try:
        digest = open_container(path).computed_digest()
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {error.strerror or error}.") from None
    except CheckpointError:
        digest = ""
    if digest != result.digest:
        raise CheckpointError(
            f"the run in {run.folder.path} was finished, but its {path.name} is damaged or another model; remove that "
            "file and resume the run, which writes it again from the last checkpoint."
        )
    return result


def _restore(run: Run, loop: Loop) -> list[str]:
    """Bring the loop to where the run was, from every file that it left; return notes about damaged files."""
    run.ranks.follow(partial(adopt, run.config, loop.keeper))
    notes = loop.keeper.load(loop.state, run.ranks)
    step = loop.state.progress.step
    if run.ranks.first:
        notes += loop.journal.rewind(step) + check_skipped(run.folder.path)
    if loop.pacer is not None:
        loop.pacer.begin(step, _spent(run, loop.state.progress.seconds))
    return notes


def _spent(run: Run, stored: float) -> float:
    """Return the seconds that a run with minutes has used: before it was stopped, and before it starts now."""
    return stored + (0.0 if run.began is None else time.monotonic() - run.began)
