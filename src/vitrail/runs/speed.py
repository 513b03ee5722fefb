"""How fast this machine is: a run's own steps, the most that matrix products reach, the largest batch that fits."""

import os
import time
from bisect import bisect
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch

from vitrail.base.errors import ConfigError
from vitrail.base.ranks import ranks_here
from vitrail.runs.folder import RunFolder
from vitrail.runs.plan import training_bytes
from vitrail.runs.train import Run
from vitrail.training.loop import Loop
from vitrail.training.signals import StopSignal

WARM_STEPS = 3
FEWEST_STEPS = 10
"""Fewest steps of a plan; a run whose time is over before that ends earlier."""
LEAST_SHARE = 0.5
"""Part of the time that a first plan gives to steps, however long evaluations took while it was measured: other
programs slow them down most, and the run itself corrects the plan."""
EVALUATIONS_TIMED = 3
MEASURED_SECONDS = 3.0
"""How long steps are timed for a first plan, which the run itself corrects (`training/pacing.py`)."""
KEPT_FREE = 0.2
"""Share of the memory that an automatic micro-batch leaves free."""


@dataclass(frozen=True, kw_only=True)
class Pace:
    """What a run's parts take on this machine, in seconds."""

    step: float
    """An update, with the making of its batch."""
    evaluation: float
    """A pass over the images to evaluate on."""

    def total(self, steps: int, evaluate_every: int) -> float:
        """Return how long N steps take, evaluations included."""
        return steps * self.step + -(-steps // evaluate_every) * self.evaluation


def steps_for(run: Run, minutes: float, evaluate_every: Callable[[int], int]) -> int:
    """Time some steps that are thrown away, and return how many fit into a time, this measurement included.

    `evaluate_every` returns after how many steps a run of N steps is evaluated.
    """
    began = time.perf_counter()
    parts = pace(run)
    budget = minutes * 60 - (time.perf_counter() - began)
    candidates = range(1, max(int(budget / parts.step), 1) + 1)
    fitting = bisect(candidates, budget, key=lambda steps: parts.total(steps, evaluate_every(steps)))
    return run.ranks.agree(max(fitting, int(LEAST_SHARE * budget / parts.step), FEWEST_STEPS))


def pace(run: Run, *, for_seconds: float = MEASURED_SECONDS) -> Pace:
    """Time a throw-away copy of the run, data included; stages count for their share of the steps."""
    run.check()
    step = 0.0
    with TemporaryDirectory() as folder:
        trial = _trial(run, folder)
        loop = trial.loop(watch=_unseen, stop=StopSignal())
        for begin, end, _ in run.config.phases:
            step += (end - begin) / run.config.steps * _time_from(trial, loop, begin, for_seconds)
        images = run.ranks.agree(int(run.config.batch / step / EVALUATIONS_TIMED) + 1)
        evaluation = _time_evaluation(trial, loop, images)
    return Pace(step=step, evaluation=evaluation)


def _time_evaluation(run: Run, loop: Loop, images: int) -> float:
    """Return the time of an evaluation on all images, from the fastest of some passes over a part of them.

    Without workers: starting them does not grow with the images.
    """
    held_out = run.held_out()
    if held_out is None:
        return 0.0
    count = len(held_out.dataset)
    some = held_out.dataset.take(np.arange(min(images, count)))
    times = []
    with loop.state.saved_weights():
        for _ in range(EVALUATIONS_TIMED):
            before = time.perf_counter()
            loop.outcome(replace(held_out, dataset=some, workers=0))
            times.append(time.perf_counter() - before)
    return min(times) / len(some) * count


def _time_from(run: Run, loop: Loop, start: int, for_seconds: float) -> float:
    """Return the lower quartile of the times of steps from `start` on; ranks agree on their number.

    The mean would follow the moments in which another program has the cores.
    """
    batches = run.batches(start)
    times: list[float] = []
    count = WARM_STEPS
    while len(times) < count:
        before = time.perf_counter()
        batch = next(batches, None)
        if batch is None:
            break
        loop.take(batch.to(run.ranks.device), 0.0)
        times.append(time.perf_counter() - before)
        if len(times) == WARM_STEPS:
            count += run.ranks.agree(min(int(for_seconds / times[-1]), 200) + 1)
    late = sorted(times[WARM_STEPS:] or times)
    return late[len(late) // 4]


@cache
def matmul_peak(device: torch.device, threads: int, side: int = 1024, rounds: int = 5) -> float:  # noqa: ARG001 - a key
    """Measure the FLOP/s of a large matrix product in float32, for comparison with a step.

    One measurement serves all runs of a process with as many `threads`.
    """
    one, other = torch.ones(side, side, device=device), torch.ones(side, side, device=device)
    best = float("inf")
    for _ in range(rounds):
        before = time.perf_counter()
        float((one @ other)[0, 0])
        best = min(best, time.perf_counter() - before)
    return 2 * side**3 / best


def largest_micro_batch(run: Run) -> int:
    """Find the largest part of the batch that fits into memory: tried out on a GPU, worked out on a CPU."""
    share = run.ranks.share(run.config.batch)
    parts = [part for part in range(share, 0, -1) if share % part == 0]
    if run.ranks.device.type == "cpu":
        most = free_memory() * (1 - KEPT_FREE)
        fits = next((part for part in parts if training_bytes(run.config, part) < most), 0)
    else:
        fits = next((part for part in parts if _runs_with(run, part)), 0)
    if not fits:
        raise ConfigError("not even one image fits into memory; choose a smaller model or image, or recompute.")
    return run.ranks.agree(fits)


def free_memory() -> float:
    """Return the bytes that new work may take, of this rank's part of the machine."""
    ranks = ranks_here()
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        kib = next(line.split()[1] for line in lines if line.startswith("MemAvailable"))
        return int(kib) * 1024 / ranks
    except (OSError, StopIteration):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2 / ranks


def _trial(run: Run, folder: str, **execution: Any) -> Run:
    """Return a throw-away copy of a run, without trackers and with a head of zeros."""
    start = run.config.start and replace(run.config.start, head="zeros")
    config = replace(run.config, start=start, execution=replace(run.config.execution, track=(), **execution))
    return replace(run, folder=RunFolder(path=Path(folder)), config=config)


def _unseen(_: int, __: dict[str, float]) -> None:
    """Watch nothing."""


def _runs_with(run: Run, images: int) -> bool:
    """Try a step with a part of the batch."""
    with TemporaryDirectory() as folder:
        trial = _trial(run, folder, micro_batch=images)
        try:
            loop = trial.loop(watch=_unseen, stop=StopSignal())
            loop.take(next(trial.batches(0)).to(run.ranks.device), 0.0)
        except torch.OutOfMemoryError:
            return False
        finally:
            torch.cuda.empty_cache()
    return True
