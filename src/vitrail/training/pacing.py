"""How many steps fit into the minutes of a run: planned at first, corrected as time passes.

The learning rate of a step follows from the number of steps that is planned when the step is taken: a plan that shrinks
lets the rate fall sooner, one that grows holds it longer. Machines that others use too change their speed by three
times within a run, so the plan is checked again about once a second. Every correction is a line of `pace.jsonl`: a
resumed run repeats the corrections that are there before it makes its own, and is the same run bit by bit.

Steps of a stage with smaller images take less time, so time is counted by the cost of steps, not by their number.

A plan that was made while others used the machine may grow many times over. Then evaluations, checkpoints and lines of
metrics become rarer with it (`stretch`), or they would take the time that was won.
"""

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from vitrail.base.errors import ConfigError, InputError
from vitrail.base.lines import append_row, read_lines
from vitrail.base.ranks import Ranks
from vitrail.base.settings import from_dict

CHECK_SECONDS = 1.0
"""Approximate time between two checks of the clock."""
WINDOW_SECONDS = 30.0
"""The last seconds of training, at most, whose speed is taken for that of the rest."""
WINDOW_SHARE = 0.1
"""The same as a share of the time that is left: a short disturbance early moves the plan little; near the end there is
no time to average."""
FINISH_SECONDS = 3.0
"""For the model file, the figures and the report, on a quiet machine."""
TOLERANCE = 0.01
"""Part of the steps to come by which a plan may be wrong before it is corrected."""
MOST_SLOWDOWN = 4.0
_WAY_OUT = (
    "The run cannot be resumed without the whole file; bring it back, or `extend` the run, which begins a new one with "
    "its state."
)


Stages = Sequence[tuple[int, float]]
"""The end of each stage and the cost of one of its steps; after the last stage a step costs 1."""


@dataclass(frozen=True, kw_only=True)
class Correction:
    """A new number of steps."""

    step: int
    """The first step for which it is valid."""
    steps: int
    """Steps of the whole run."""
    seconds: float
    """Time that the run had taken by then."""


class Pacer:
    """Keeps the number of steps of a run to the time that is left.

    `stretch` is the factor by which the plan has grown, as a power of 2; it never falls.
    """

    def __init__(
        self,
        *,
        seconds: float,
        steps: int,
        first: int = 0,
        stages: Stages = (),
        evaluate_every: int,
        evaluation: float,
        path: Path,
        ranks: Ranks,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.seconds, self.steps = seconds, steps
        self.first, self.planned, self.stretch = first, steps, 1
        self.stages = stages
        self.evaluate_every, self.evaluation = evaluate_every, evaluation
        self.path, self.ranks, self.clock = path, ranks, clock
        self.usual = max(seconds, 1e-9) / max(cost(steps, stages) - cost(first, stages), 1)
        self.check_every = max(round(CHECK_SECONDS / self.usual), 1)
        self.stored: deque[Correction] = deque()
        self.spent, self.began, self.paused = 0.0, clock(), 0.0
        self.window: deque[tuple[int, float]] = deque()

    def begin(self, step: int, spent: float) -> None:
        """Start, or resume at a step after some seconds; corrections that were stored after it will be repeated."""
        rows = read_corrections(self.path)
        for row in rows:
            if row.step <= step:
                self._plan(row.steps)
                spent = max(spent, row.seconds)
        self.stored = deque(row for row in rows if row.step > step)
        self.spent, self.began, self.paused = spent, self.clock(), 0.0
        self.window = deque([(step, self.clock())])

    @property
    def elapsed(self) -> float:
        """Seconds of the run so far, those before a resume included."""
        return self.spent + self.clock() - self.began

    def check(self, step: int) -> None:
        """Before a step: repeat a stored correction, or check the clock."""
        if self.stored:
            while self.stored and self.stored[0].step <= step:
                self._plan(self.stored.popleft().steps)
            return
        if step % self.check_every and step + 1 < self.steps:
            return
        now = self.clock() - self.paused
        if self.window[-1][0] < step:
            self.window.append((step, now))
        window = min(WINDOW_SECONDS, WINDOW_SHARE * max(self.seconds - self.elapsed, 0.0))
        while now - self.window[0][1] > window and len(self.window) > 2:
            self.window.popleft()
        if self.window[0][0] == step:
            return
        steps = self.ranks.agree(self._fitting(step))
        if abs(steps - self.steps) > max(TOLERANCE * (self.steps - step), 1):
            self._correct(step, steps)

    def pause(self, seconds: float, *, evaluated: bool) -> None:
        """Record time that was not training, and the time of an evaluation."""
        self.paused += seconds
        if evaluated:
            self.evaluation = seconds

    def _fitting(self, step: int) -> int:
        """Return how many steps the whole run can have, at the speed of the last seconds; at least one more."""
        (first, before), (last, now) = self.window[0], self.window[-1]
        each = (now - before) / (cost(last, self.stages) - cost(first, self.stages))
        slowdown = min(max(each / self.usual, 1.0), MOST_SLOWDOWN)
        left = self.seconds - self.elapsed - FINISH_SECONDS * slowdown - self.evaluation
        evaluating = self.evaluation / (self.evaluate_every * self.stretch)
        reached = step
        for end, own in self.stages:
            seconds = each * own + evaluating
            fitting = reached + int(left / seconds)
            if fitting < end:
                return max(fitting, step + 1)
            left -= max(end - reached, 0) * seconds
            reached = max(reached, end)
        return max(reached + int(left / (each + evaluating)), step + 1)

    def _plan(self, steps: int) -> None:
        """Take another number of steps; the intervals of cadences double each time that the plan has doubled."""
        self.steps = steps
        while steps - self.first >= 2 * self.stretch * (self.planned - self.first):
            self.stretch *= 2

    def _correct(self, step: int, steps: int) -> None:
        self._plan(steps)
        if self.ranks.first:  # to the disk before the step that follows from it: a kill must not lose it
            append_row(self.path, asdict(Correction(step=step, steps=steps, seconds=self.elapsed)), sync=True)


def cost(step: int, stages: Stages) -> float:
    """Return what the steps before one cost together."""
    total, begin = 0.0, 0
    for end, own in stages:
        total += own * (min(max(step, begin), end) - begin)
        begin = end
    return total + max(step - begin, 0)


def read_corrections(path: Path) -> list[Correction]:
    """Read every correction of a run; without one of them it could not be the same run again."""
    lines = read_lines(path)
    try:
        rows = [from_dict(Correction, row) for row in lines.rows]
    except ConfigError as error:
        raise InputError(f"{path} is damaged: {error} {_WAY_OUT}") from None
    if lines.damaged:
        raise InputError(f"{path} is damaged in line {lines.damaged[0]}. {_WAY_OUT}")
    return rows
