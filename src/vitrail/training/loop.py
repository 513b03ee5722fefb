"""The loop: one for everything that learns. The differences between runs are its arguments."""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from torch import nn

from vitrail.base.errors import WorkerError
from vitrail.base.journal import Journal
from vitrail.base.ranks import Ranks
from vitrail.data.loader import Batch
from vitrail.training.clock import Clock
from vitrail.training.endings import StoppedError, diverged
from vitrail.training.evaluator import Evaluator
from vitrail.training.keeper import Keeper
from vitrail.training.pacing import Pacer
from vitrail.training.parallel import gathered
from vitrail.training.schedules import Schedule
from vitrail.training.signals import Interruption, StopSignal
from vitrail.training.state import TrainState
from vitrail.training.step import Step, StepConfig, take_step

Watch = Callable[[int, dict[str, float]], None]

MOST_BAD_IN_A_ROW = 3


@dataclass(frozen=True, kw_only=True)
class LoopConfig:
    """The run's length and cadences, in steps."""

    steps: int
    log_every: int
    checkpoint_every: int
    patience: int | None = None
    """Evaluations without a better score after which the run ends; None never ends early."""


@dataclass(frozen=True, kw_only=True)
class Loop:
    """The parts of a run, assembled by `runs/`."""

    state: TrainState
    parallel: nn.Module
    """The learner, wrapped for several ranks where there are several."""
    schedule: Schedule
    config: LoopConfig
    step: StepConfig
    batches: Callable[[int], Iterator[Batch]]
    """Batches from a step on."""
    evaluators: Sequence[Evaluator[Any]]
    """All evaluators; the figure that the learner names decides about the best weights and early stopping."""
    keep_best: Callable[[TrainState], None]
    """Called while the model has the weights of the best evaluation so far; on every rank."""
    keeper: Keeper
    journal: Journal
    ranks: Ranks
    stop: StopSignal
    watch: Watch
    pacer: Pacer | None = None
    """Keeps the number of steps to the minutes of a run that has them."""
    outcomes: dict[str, Any] = field(default_factory=dict)
    """The last outcome of each evaluator, by its name; those of another process are not there."""

    def run(self) -> None:
        """Train from where the state is to the end; a signal stops it after a step, or while a batch is awaited."""
        with self.stop.deferred():
            self._run()

    def _run(self) -> None:
        progress, clock = self.state.progress, Clock()
        if progress.step and self._evaluators_due():
            self._housekeep()
        batches = self._awaited(progress.step)
        while progress.step < self.steps and not progress.stopped:
            self._keep_pace()
            batch = next(batches).to(self.ranks.device)
            rate = self.schedule.rate(progress.step, self.steps)
            if progress.step not in progress.bad_steps:
                step = self.take(batch, rate)
                if step is None and self._go_back(batch):
                    batches, progress = self._awaited(self.state.progress.step), self.state.progress
                    continue
                clock.images += 0 if step is None else step.images
            progress.step += 1
            if self._due(self.config.log_every):
                self._log(rate, clock.read())
            with clock.paused():
                self._housekeep()

    def _awaited(self, step: int) -> Iterator[Batch]:
        """Yield the batches from a step on; a signal or a lost worker while one is awaited saves and stops."""
        alone = self.ranks.world == 1
        try:
            yield from self.stop.awaited(self.batches(step), alone=alone)
        except Interruption:
            raise StoppedError(self._saved("stopped", saves=alone)) from None
        except WorkerError as error:
            raise self._lost(error) from error

    def _lost(self, error: WorkerError) -> WorkerError:
        """Save before a run ends because a worker was lost."""
        return WorkerError(self._saved(str(error).rstrip("."), saves=self.ranks.world == 1))

    def _saved(self, reason: str, *, saves: bool = True) -> str:
        """Save between two steps, unless other ranks would have to as well; return a sentence about resuming."""
        if not saves or not self._checkpoint():
            return f"{reason}; the same command resumes from the last checkpoint."
        return f"{reason}; the run is saved at step {self.state.progress.step}, the same command resumes from there."

    @property
    def steps(self) -> int:
        """The steps of the whole run, as they are planned now."""
        return self.config.steps if self.pacer is None else self.pacer.steps

    @property
    def stretch(self) -> int:
        """The factor by which every cadence of the config is longer, since the run has become longer than planned."""
        return 1 if self.pacer is None else self.pacer.stretch

    def _keep_pace(self) -> None:
        """Check the pacer, where there is one, and report a new plan."""
        if self.pacer is None:
            return
        before = self.steps
        self.pacer.check(self.state.progress.step)
        if self.steps != before:
            self.watch(self.state.progress.step, {"planned_steps": float(self.steps)})

    def take(self, batch: Batch, rate: float) -> Step | None:
        """Take a step and count it; None when its loss or gradient was not finite."""
        step = take_step(self.state, self.parallel, batch, rate, steps=self.steps, config=self.step, ranks=self.ranks)
        if not step.good:
            return step if step.overflow else None
        window = self.state.progress.window
        sums = {"images": step.images, "loss": step.loss * step.images, "gradient_norm": step.norm * step.images}
        for name, value in (sums | step.sums).items():
            window[name] = window.get(name, 0.0) + value
        return step

    def _housekeep(self) -> None:
        """Evaluate, save and stop where these are due; a stop does not wait for an evaluation."""
        stopping = self.ranks.any(self.stop.requested)
        if not stopping:
            self._evaluate_in_time()
            stopping = bool(self._evaluators_due())  # one was interrupted
        if stopping and (self.state.progress.step < self.steps or self._evaluators_due()):
            raise StoppedError(self._saved("stopped"))
        if stopping or self._due(self.config.checkpoint_every):
            self._checkpoint()

    def _evaluators_due(self) -> list[Evaluator[Any]]:
        """Return the evaluators that are due and have not run at this step."""
        return [evaluator for evaluator in self.evaluators if self._due(evaluator.every) and not self.is_new(evaluator)]

    def is_new(self, evaluator: Evaluator[Any]) -> bool:
        """Return whether an evaluator has measured the weights of the present step."""
        return self.state.progress.evaluated.get(evaluator.name, 0) == self.state.progress.step

    def _due(self, every: int) -> bool:
        step = self.state.progress.step
        return step % (every * self.stretch) == 0 or step == self.steps

    def _log(self, rate: float, timing: dict[str, float]) -> None:
        progress = self.state.progress
        window, progress.window = progress.window, {}
        images = window.pop("images", 0.0)
        if not images:
            return
        means = {name: value / images for name, value in window.items()}
        metrics = {name: means.pop(name) for name in ("loss", "gradient_norm")} | {"learning_rate": rate} | means
        if self.ranks.first:
            self.journal.log(progress.step, metrics, timing)
        self.watch(progress.step, metrics | timing)

    def _evaluate_in_time(self) -> None:
        """Evaluate, and report the time to the pacer."""
        before, due = time.monotonic(), bool(self._evaluators_due())
        self._evaluate()
        if self.pacer is not None and due:
            self.pacer.pause(time.monotonic() - before, evaluated=True)

    def _evaluate(self) -> None:
        """Run the evaluators that are due on the weights that would be saved now."""
        due = self._evaluators_due()
        if not due:
            return
        try:
            with self.state.saved_weights():
                for evaluator in due:
                    self._measure(evaluator)
        except StoppedError:
            return  # it comes first when the run is resumed
        except WorkerError as error:
            raise self._lost(error) from error

    def outcome(self, evaluator: Evaluator[Any]) -> Any:
        """Run an evaluator on the model, unless it has run at this step; within `state.saved_weights`."""
        if self.is_new(evaluator) and evaluator.name in self.outcomes:
            return self.outcomes[evaluator.name]
        with gathered(self.state.learner) as learner:
            return evaluator.evaluate_learner(learner, self.state.progress.step)

    def _measure(self, evaluator: Evaluator[Any]) -> None:
        """Measure, remember the best, and decide about stopping early."""
        progress, learner = self.state.progress, self.state.learner
        outcome = self.outcome(evaluator)
        figures = evaluator.journaled(outcome)
        for name, value in figures.items():
            if not math.isfinite(value):
                raise diverged(f"{name} is {value} after step {progress.step}", step=progress.step)
        progress.evaluated[evaluator.name] = progress.step
        self.outcomes[evaluator.name] = outcome
        if self.ranks.first:
            self.journal.log(progress.step, figures)
        self.watch(progress.step, figures)
        if learner.score not in figures:
            return
        score = figures[learner.score] * (1 if learner.higher_is_better else -1)
        if progress.best is None or score > progress.best:
            progress.best, progress.best_step = score, progress.step
            self.keep_best(self.state)
        elif self.config.patience is not None and progress.best_step is not None:
            waited = (progress.step - progress.best_step) // (evaluator.every * self.stretch)
            progress.stopped = waited >= self.config.patience

    def _checkpoint(self) -> bool:
        """Save, unless the weights have become useless; a disk that is full costs nothing that was saved before."""
        if not self.state.finite():
            return False
        if self.pacer is not None:
            self.state.progress.seconds = self.pacer.elapsed
        if self.ranks.first:
            self.journal.sync()
        self.keeper.save(self.state, self.ranks)
        return True

    def _go_back(self, batch: Batch) -> bool:
        """Write the batch for inspection, skip it, and return whether the state had to be restored.

        The failed step has changed nothing, so the state in memory is good, unless the weights themselves are not
        finite any more: then a checkpoint replaces them.
        """
        step = self.state.progress.step
        bad = [*self.state.progress.bad_steps, step]
        if self.ranks.first:
            self.keeper.keep_batch(batch, step)
        if set(range(step - MOST_BAD_IN_A_ROW + 1, step + 1)) <= set(bad):
            raise diverged(
                f"the loss was not finite {MOST_BAD_IN_A_ROW} times in a row, up to step {step}; the batches are in "
                f"{self.keeper.bad_folder}",
                step=step,
            )
        self.watch(step, {"bad_step": float(step)})
        broken = not self.state.finite()
        if broken:
            self.keeper.load(self.state, self.ranks)
            if self.ranks.first:
                self.journal.rewind(self.state.progress.step)
        self.state.progress.bad_steps = bad
        return broken
