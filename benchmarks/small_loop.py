"""The training loop of the default model on small machines: where the time goes, and what each way of working gains.

    python benchmarks/small_loop.py DATA [--threads 2] [--steps 8] [--rounds 12] [--busy]

The default run of `vitrail train DATA`, data included, in one process. Ways of working are paired round by round
(`contest.py`), each round some steps of each: `as it is`; `Muon together`, with products that all threads share;
`batches on request`, without making one ahead; and `neither`, as it was before both. Of the first and the last the
shares of a step's time are printed (waiting for the batch, forward and backward pass, norm and optimiser), and how busy
the cores are: seconds of computing over seconds passed and threads. --busy runs an endless program on one core.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import torch
from contest import machine, paired, race

from vitrail.base.ranks import Ranks
from vitrail.data.batch import Batch
from vitrail.runs.train import Run
from vitrail.training import step as stepping
from vitrail.training.loop import Loop
from vitrail.training.signals import StopSignal
from vitrail.verbs.request import make_request
from vitrail.verbs.settle import ScratchRequest, settle

NOW, BEFORE = "as it is", "neither"
PARTS = ("batch", "passes", "norm and optimiser")


class Way:
    """A loop of its own, with the seconds of its parts."""

    def __init__(self, run: Run, *, together: bool, ahead: bool, steps: int) -> None:
        loop = run.loop(watch=lambda *_: None, stop=StopSignal())
        self.loop: Loop = replace(loop, step=replace(loop.step, threads=1)) if together else loop
        self.batches, self.steps = self._start(ahead), steps
        self.seconds = dict.fromkeys(PARTS, 0.0)
        self.passed = self.computed = 0.0

    def _start(self, ahead: bool) -> Iterator[Batch]:
        batches = self.loop.batches(0)
        with patch("vitrail.data.loader.made_ahead", map) if not ahead else _nothing():
            next(batches)
        return batches

    def __call__(self) -> None:
        """Take some steps."""
        began, computing = time.perf_counter(), time.process_time()
        for _ in range(self.steps):
            with self._timed("batch"):
                batch = next(self.batches)
            taken = self.seconds["norm and optimiser"]
            with self._timed("passes"), self._inside():
                self.loop.take(batch, 1e-4)
            self.seconds["passes"] -= self.seconds["norm and optimiser"] - taken
            self.loop.state.progress.step += 1
        self.passed += time.perf_counter() - began
        self.computed += time.process_time() - computing

    @contextmanager
    def _timed(self, part: str) -> Iterator[None]:
        began = time.perf_counter()
        yield
        self.seconds[part] += time.perf_counter() - began

    @contextmanager
    def _inside(self) -> Iterator[None]:
        """Time the norm and the optimiser inside a step."""
        optimizer = self.loop.state.optimizer
        small = patch.object(stepping, "_alone", self._wrapped(stepping._alone))
        with small, patch.object(optimizer, "step", self._wrapped(optimizer.step)):
            yield

    def _wrapped(self, work: Callable) -> Callable:
        def timed(*args: object) -> object:
            with self._timed("norm and optimiser"):
                return work(*args)

        return timed

    def shares(self, threads: int) -> str:
        """Write where the time went."""
        total = sum(self.seconds.values())
        parts = ", ".join(f"{part} {seconds / total:.1%}" for part, seconds in self.seconds.items())
        return f"{parts}; cores busy {self.computed / self.passed / threads:.0%}"


@contextmanager
def _nothing() -> Iterator[None]:
    yield


@contextmanager
def busy_core(busy: bool) -> Iterator[None]:
    """Run an endless program on the first core that this process may use."""
    if not busy:
        yield
        return
    core = min(os.sched_getaffinity(0))
    program = subprocess.Popen([sys.executable, "-c", f"import os; os.sched_setaffinity(0, {{{core}}})\nwhile 1: pass"])
    try:
        yield
    finally:
        program.kill()
        program.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("--model", default=None, help="a model of the paper in place of the rule's")
    parser.add_argument("--batch", type=int, default=None)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--busy", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    with tempfile.TemporaryDirectory() as folder, busy_core(args.busy):
        keywords = {"out": Path(folder) / "run", "device": "cpu", "steps": 10**5, "model": args.model}
        keywords = {name: value for name, value in (keywords | {"batch": args.batch}).items() if value is not None}
        run = settle(make_request(ScratchRequest, args.data, keywords), Ranks())
        ways = {
            name: Way(run, together=together, ahead=ahead, steps=args.steps)
            for name, together, ahead in (
                (NOW, False, True),
                ("Muon together", True, True),
                ("batches on request", False, False),
                (BEFORE, True, False),
            )
        }
        seconds = race(ways, args.rounds)
    images = run.config.batch * args.steps
    print(
        {"data": args.data, "model": run.config.model.summary, "batch": run.config.batch, "busy": args.busy} | machine()
    )
    for name, theirs in seconds.items():
        speed = images / sorted(theirs)[len(theirs) // 2]
        print(f"{name:20}{speed:8.1f} images/s   `{NOW}` is {paired(seconds[NOW], theirs)} as fast")
    for name in (NOW, BEFORE):
        print(f"{name:20}{ways[name].shares(args.threads)}")


if __name__ == "__main__":
    main()
