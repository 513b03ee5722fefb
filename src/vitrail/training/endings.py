"""How a run ends before its last step: stopped by a signal, or because its numbers are not finite any more."""

from vitrail.base.errors import VitrailError


class DivergedError(VitrailError):
    """A loss that is not finite three times in a row, or weights or scores that are not; `step` is where."""

    exit_code = 1

    def __init__(self, sentence: str, *, step: int) -> None:
        super().__init__(sentence)
        self.step = step


def diverged(reason: str, *, step: int) -> DivergedError:
    """Return the error for a run whose numbers are not finite any more, with what to do."""
    return DivergedError(
        f"{reason}. The last good checkpoint is kept; begin a new run with a lower `learning_rate`, a longer `warmup` "
        "or clipped gradients (`optimizer.clip_norm`).",
        step=step,
    )


class StoppedError(VitrailError):
    """A run that was stopped by a signal, after saving."""
