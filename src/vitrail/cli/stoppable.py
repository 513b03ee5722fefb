"""Long work that many ranks share, and that a signal may stop: the frame of every verb that trains."""

from collections.abc import Callable
from typing import TypeVar

from vitrail.base.ranks import Ranks
from vitrail.cli.names import in_flags
from vitrail.cli.say import say
from vitrail.runs.execution import Device, Execution
from vitrail.training.endings import StoppedError
from vitrail.training.signals import Interruption, StopSignal
from vitrail.verbs.frame import STOPPED, training_frame

Result = TypeVar("Result")


def carry_out(
    work: Callable[[Ranks, StopSignal], Result],
    show: Callable[[Result], None],
    *,
    threads: int | None,
    device: Device | None,
    stored: Execution | None = None,
) -> int:
    """Do the work on all ranks, let the first one show its result, and return the exit code."""
    with training_frame(threads, device, stored, words=in_flags) as (ranks, stop):
        try:
            result = work(ranks, stop)
        except (StoppedError, Interruption) as stopped:
            if ranks.first:
                say(str(stopped) or STOPPED)
            return stop.exit_code
        if ranks.first:
            show(result)
    return 0
