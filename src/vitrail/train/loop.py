"""The loop: one for everything that learns. What differs between runs is a value that it is given."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path

from torch import nn

from vitrail.base.container import write_container
from vitrail.base.errors import VitrailError, WriteError
from vitrail.base.files import atomic_write
from vitrail.base.journal import Journal
from vitrail.base.ranks import Ranks
from vitrail.base.tensors import from_tensors
from vitrail.data.loader import Batch
from vitrail.train.keeper import Keeper
from vitrail.train.schedules import Schedule
from vitrail.train.signals import StopSignal
from vitrail.train.state import TrainState
from vitrail.train.step import StepConfig, Taken, take_step

Scores = dict[str, float]
Watch = Callable[[int, dict[str, float]], None]

MOST_BAD_IN_A_ROW = 3


class DivergedError(VitrailError):
    """A loss that is not finite, three times in a row; `step` is the last of them."""

    exit_code = 1

    def __init__(self, sentence: str, *, step: int) -> None:
        super().__init__(sentence)
        self.step = step


class StoppedError(VitrailError):
    """A run that was asked to stop, and has saved itself."""


@dataclass(frozen=True, kw_only=True)
class LoopConfig:
    """How long, and what is done how often; all in steps."""

    steps: int
    log_every: int
    evaluate_every: int
    checkpoint_every: int
    patience: int | None = None
    """Evaluations without a better score after which the run ends; None never ends early."""


@dataclass(frozen=True, kw_only=True)
class Loop:
    """Everything that a run is made of, put together by `runs/`."""

    state: TrainState
    parallel: nn.Module
    """The learner, wrapped for several ranks where there are several."""
    schedule: Schedule
    config: LoopConfig
    step: StepConfig
    batches: Callable[[int], Iterator[Batch]]
    """Batches from a step on."""
    evaluate: Callable[[nn.Module], Scores]
    """Scores of the model; its accuracy decides what is best, and about early stopping."""
    keep_best: Callable[[TrainState], None]
    """Called while the model has the weights of the best evaluation so far; on every rank."""
    keeper: Keeper
    journal: Journal
    ranks: Ranks
    stop: StopSignal
    watch: Watch

    def run(self) -> None:
        """Train from where the state is to the end."""
        progress, clock = self.state.progress, _Clock()
        if progress.step and self._is_look_due():
            self._look_after()
        batches = self.batches(progress.step)
        while progress.step < self.config.steps and not progress.stopped:
            batch = next(batches).to(self.ranks.device)
            rate = self.schedule.rate(progress.step, self.config.steps)
            if progress.step not in progress.bad_steps:
                taken = self.take(batch, rate)
                if taken is None and self._go_back(batch):
                    batches, progress = self.batches(self.state.progress.step), self.state.progress
                    continue
                clock.images += 0 if taken is None else taken.images
            progress.step += 1
            if self._due(self.config.log_every):
                self._log(rate, clock.read())
            with clock.paused():
                self._look_after()

    def take(self, batch: Batch, rate: float) -> Taken | None:
        """Take a step and count it; None when its loss or gradient was not finite."""
        taken = take_step(
            self.state, self.parallel, batch, rate, steps=self.config.steps, config=self.step, ranks=self.ranks
        )
        if not taken.good:
            return taken if taken.overflow else None
        window = self.state.progress.window
        sums = {"images": taken.images, "loss": taken.loss * taken.images, "gradient_norm": taken.norm * taken.images}
        for name, value in (sums | taken.sums).items():
            window[name] = window.get(name, 0.0) + value
        return taken

    def _look_after(self) -> None:
        """Evaluate, save and stop where it is time for that; who asks to stop does not wait for an evaluation."""
        asked = self.ranks.any(self.stop.asked)
        if self._is_look_due() and not asked:
            self._evaluate()
            asked = self._is_look_due()  # it was cut short
        if asked or self._due(self.config.checkpoint_every):
            self._checkpoint()
        if asked and (self.state.progress.step < self.config.steps or self._is_look_due()):
            raise StoppedError(f"stopped after step {self.state.progress.step}; the same command goes on from there.")

    def _is_look_due(self) -> bool:
        return self._due(self.config.evaluate_every) and self.state.progress.looked < self.state.progress.step

    def _due(self, every: int) -> bool:
        step = self.state.progress.step
        return step % every == 0 or step == self.config.steps

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

    def _evaluate(self) -> None:
        """Score the averaged weights where there are any, remember the best, and think of stopping."""
        state, progress = self.state, self.state.progress
        try:
            with nullcontext() if state.average is None else state.average.applied():
                scores = self._scores()
        except StoppedError:
            return  # it comes first when the run goes on
        progress.looked = progress.step
        if self.ranks.first:
            self.journal.log(progress.step, {f"val_{name}": value for name, value in scores.items()})
        self.watch(progress.step, {f"val_{name}": value for name, value in scores.items()})
        if self.config.patience is not None and progress.best_step is not None and progress.best_step < progress.step:
            waited = (progress.step - progress.best_step) // self.config.evaluate_every
            progress.stopped = waited >= self.config.patience

    def _scores(self) -> Scores:
        state, progress = self.state, self.state.progress
        state.learner.eval()
        try:
            scores = self.evaluate(state.learner.model)
        finally:
            state.learner.train()
        score = scores.get("accuracy")
        if score is not None and (progress.best is None or score > progress.best):
            progress.best, progress.best_step = score, progress.step
            self.keep_best(state)
        return scores

    def _checkpoint(self) -> None:
        """Save, unless the weights have become useless; a disk that is full costs nothing that was saved before."""
        if self.state.finite():
            if self.ranks.first:
                self.journal.sync()
            self.keeper.save(self.state, self.ranks)

    def _go_back(self, batch: Batch) -> bool:
        """Keep the batch for whoever wants to know, pass over it, and tell whether the state had to be restored.

        The step that failed has moved nothing, so the last good state is the one in memory; unless the weights
        themselves are no numbers any more, and a checkpoint takes their place.
        """
        step = self.state.progress.step
        bad = [*self.state.progress.bad_steps, step]
        if self.ranks.first:
            self._keep_batch(batch, step)
        if set(range(step - MOST_BAD_IN_A_ROW + 1, step + 1)) <= set(bad):
            raise DivergedError(
                f"the loss was not finite {MOST_BAD_IN_A_ROW} times in a row, up to step {step}; the batches are in "
                f"{self.bad_folder}. Lower the learning rate, lengthen the warm-up, or clip gradients.",
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

    @property
    def bad_folder(self) -> Path:
        """Where batches lie whose loss was not finite."""
        return self.keeper.folder.parent / "bad"

    def _keep_batch(self, batch: Batch, step: int) -> None:
        self.bad_folder.mkdir(exist_ok=True)
        path = self.bad_folder / f"step-{step:09}.safetensors"
        with suppress(WriteError), atomic_write(path) as file:  # a full disk must not hide the loss
            write_container(file, from_tensors(batch.tensors(), "the batch"), {}, digest=False)


class _Clock:
    """Time and images since the last line, without what is not training."""

    def __init__(self) -> None:
        self.images, self.started = 0, time.perf_counter()

    def read(self) -> dict[str, float]:
        """Return seconds and speed, and start again."""
        seconds = time.perf_counter() - self.started
        found = {"seconds": seconds, "images_per_second": self.images / seconds}
        self.images, self.started = 0, time.perf_counter()
        return found

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Do not count what happens here."""
        before = time.perf_counter()
        yield
        self.started += time.perf_counter() - before
