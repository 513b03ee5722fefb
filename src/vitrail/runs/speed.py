"""How fast this machine is: a run's own steps, the most that matrix products reach, the largest batch that fits."""

import os
import time
from bisect import bisect
from collections.abc import Callable
from dataclasses import dataclass, replace
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
"""What is planned at the least; a run whose time is over before that ends earlier."""
MEASURED_SECONDS = 3.0
"""How long steps are timed for a first plan, which the run itself corrects (`training/pacing.py`)."""
KEPT_FREE = 0.2
"""Share of the memory that an automatic micro-batch leaves alone."""


@dataclass(frozen=True, kw_only=True)
class Pace:
    """What a run's parts take on this machine, in seconds."""

    step: float
    """An update, with the making of its batch."""
    look: float
    """An answer for every held-out image."""

    def total(self, steps: int, evaluate_every: int) -> float:
        """Return how long so many steps take, with their looks at the held-out images."""
        return steps * self.step + -(-steps // evaluate_every) * self.look


def steps_for(run: Run, minutes: float, evaluate_every: Callable[[int], int]) -> int:
    """Time some steps that are thrown away, and return how many fit into a time, this measurement included.

    `evaluate_every` tells how often a run of so many steps looks at its held-out images.
    """
    began = time.perf_counter()
    found = pace(run)
    budget = minutes * 60 - (time.perf_counter() - began)
    candidates = range(1, max(int(budget / found.step), 1) + 1)
    fitting = bisect(candidates, budget, key=lambda steps: found.total(steps, evaluate_every(steps)))
    return run.ranks.agree(max(fitting, FEWEST_STEPS))


def pace(run: Run, *, for_seconds: float = MEASURED_SECONDS) -> Pace:
    """Time a throw-away copy of the run, data included; stages count for their share of the steps."""
    run.check()
    step = 0.0
    with TemporaryDirectory() as folder:
        trial = _trial(run, folder)
        loop = trial.loop(watch=_unseen, stop=StopSignal())
        for begin, end, _ in run.config.phases:
            step += (end - begin) / run.config.steps * _time_from(trial, loop, begin, for_seconds)
        look = _time_look(trial, loop, images=run.ranks.agree(int(run.config.batch / step) + 1))
    return Pace(step=step, look=look)


def _time_look(run: Run, loop: Loop, images: int) -> float:
    """Return the time for all held-out images, from that for some; starting workers does not grow with the images."""
    held_out = run.held_out()
    if held_out is None:
        return 0.0
    count = len(held_out.dataset)
    some = held_out.dataset.take(np.arange(min(images, count)))
    before = time.perf_counter()
    with loop.saved_weights():
        loop.outcome(replace(held_out, dataset=some, workers=0))
    return (time.perf_counter() - before) / len(some) * count


def _time_from(run: Run, loop: Loop, start: int, for_seconds: float) -> float:
    """Return the mean time of some steps from one on; ranks agree on how many."""
    batches = run.batches(start)
    times: list[float] = []
    wanted = WARM_STEPS
    while len(times) < wanted:
        before = time.perf_counter()
        batch = next(batches, None)
        if batch is None:
            break
        loop.take(batch.to(run.ranks.device), 0.0)
        times.append(time.perf_counter() - before)
        if len(times) == WARM_STEPS:
            wanted += run.ranks.agree(min(int(for_seconds / times[-1]), 200) + 1)
    late = times[WARM_STEPS:] or times
    return sum(late) / len(late)


def matmul_peak(device: torch.device, side: int = 1024, rounds: int = 5) -> float:
    """Measure the FLOP/s of a large matrix product in float32: what a step is compared with."""
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
        most = _free_memory() * (1 - KEPT_FREE)
        fits = next((part for part in parts if training_bytes(run.config, part) < most), 0)
    else:
        fits = next((part for part in parts if _runs_with(run, part)), 0)
    if not fits:
        raise ConfigError("not even one image fits into memory; choose a smaller model or image, or recompute.")
    return run.ranks.agree(fits)


def _free_memory() -> float:
    """Return the bytes that new work may take, of this rank's part of the machine."""
    ranks = ranks_here()
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        kib = next(line.split()[1] for line in lines if line.startswith("MemAvailable"))
        return int(kib) * 1024 / ranks
    except (OSError, StopIteration):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2 / ranks


def _trial(run: Run, folder: str, **execution: Any) -> Run:
    """Return a copy of a run that is thrown away, of which no tracker hears."""
    config = replace(run.config, execution=replace(run.config.execution, track=(), **execution))
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
