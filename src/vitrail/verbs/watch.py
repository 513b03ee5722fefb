"""A run on stderr: its settings before, a bar on a terminal or lines elsewhere during."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from vitrail.base.printable import line, printable
from vitrail.base.readable import counted
from vitrail.model.cost import cost
from vitrail.model.patches import size_text
from vitrail.runs.config import RunConfig
from vitrail.runs.train import Run
from vitrail.training import pacing
from vitrail.verbs.collapse import collapse_notes

Words = Callable[[str], str]
"""Puts a sentence into the words of the caller: the command line writes flags in place of settings."""
QUIET_SECONDS = 5.0
"""Without a terminal, at least so long between two lines."""


class Watcher:
    """Shows the measurements of a run as they come: a bar on a terminal, plain lines elsewhere; all on stderr."""

    def __init__(self, config: RunConfig, *, quiet: bool, words: Words = str) -> None:
        self.steps, self.stages, self.quiet, self.words = config.steps, config.stage_costs, quiet, words
        self.values: dict[str, float] = {}
        self.warned: set[str] = set()
        self.printed = self.began = time.monotonic()
        self.first = 0
        console = Console(stderr=True)
        self.bar: Progress | None = None
        if console.is_terminal and not quiet:
            columns = (BarColumn(), TextColumn("{task.percentage:3.0f}%"), TextColumn("{task.description}"))
            self.bar = Progress(*columns, TimeRemainingColumn(), console=console)
            self.task = self.bar.add_task("", total=self.work(self.steps))

    def __enter__(self) -> "Watcher":
        """Start to draw."""
        if self.bar is not None:
            self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Leave the bar as it is."""
        if self.bar is not None:
            self.bar.stop()

    def start(self, step: int) -> None:
        """Report the step from which the run continues."""
        self.first, self.began = step, time.monotonic()
        if step:
            self.note(f"resuming from step {step} of {self.steps}.")

    def note(self, sentence: str) -> None:
        """Print a note."""
        if self.quiet:
            return
        text = f"vitrail: {self.words(sentence)}"
        if self.bar is None:
            line(text)
        else:
            self.bar.console.print(printable(text), markup=False, highlight=False)

    def __call__(self, step: int, values: dict[str, float]) -> None:
        """Show the values of a step."""
        if "bad_step" in values:
            self.note(f"the loss of step {step} was not finite; its batch is kept and passed over.")
            return
        if "planned_steps" in values:
            self.steps = int(values["planned_steps"])
            if self.bar is not None:
                self.bar.update(self.task, total=self.work(self.steps))
            return
        self.values |= values
        for name, sentence in collapse_notes(values, step, self.steps).items():
            if name not in self.warned:
                self.warned.add(name)
                self.note(sentence)
        if self.quiet:
            return
        text = describe(self.values)
        if self.bar is not None:
            self.bar.update(self.task, completed=self.work(step), description=text)
            return
        now, evaluated = time.monotonic(), any(name.startswith(("val_", "probe_")) for name in values)
        if evaluated or now - self.printed >= QUIET_SECONDS:
            self.printed = now
            line(f"step {step}/{self.steps}  {text}  {self.left(step, now):.0f} s left")

    def work(self, step: int) -> float:
        """Return what the steps before one cost together; those with smaller images cost less."""
        return pacing.cost(step, self.stages)

    def left(self, step: int, now: float) -> float:
        """Return the seconds until the end, at the speed so far."""
        done = self.work(step) - self.work(self.first)
        return (now - self.began) * (self.work(self.steps) - self.work(step)) / done if done else 0.0


def describe(values: dict[str, float]) -> str:
    """Write measurements in a line."""
    parts = [f"loss {values['loss']:.3f}"] if "loss" in values else []
    parts += [f"accuracy {values['accuracy']:.1%}"] if "accuracy" in values else []
    for name, words in (
        ("patch_accuracy", "patches"),
        ("val_accuracy", "val accuracy"),
        ("probe_accuracy", "few-shot"),
        ("probe_found", "copies found"),
    ):
        parts += [f"{words} {values[name]:.1%}"] if name in values else []
    parts += [f"{values['images_per_second']:.0f} images/s"] if "images_per_second" in values else []
    return "  ".join(parts)


@contextmanager
def watched(config: RunConfig, title: str, *, quiet: bool, words: Words = str) -> Iterator[Watcher]:
    """Show one run of a series, which a few words describe."""
    with Watcher(config, quiet=quiet, words=words) as watcher:
        watcher.note(title)
        yield watcher


def print_choices(run: Run, words: Words = str) -> None:
    """Print the settings of a run before it starts."""
    config, data, folder = run.config, run.data, run.folder
    need, model = cost(config.model), config.model
    classes = f" of {data.classes} classes" if data.classes else ""
    evaluation = "nothing" if data.evaluation is None else f"{len(data.evaluation)} of {data.evaluation.split}"
    lines = {
        "data": f"{data.train.where}: {len(data.train)} images{classes}; held out: {evaluation}",
        "model": f"{model.summary}, {counted(need.parameters)} parameters, {counted(need.macs, 'MACs')} an image",
        "images": f"{size_text(config.preprocessing.image_size)} pixels, {model.channels} channels{smaller(config)}",
        "length": f"{config.steps} steps of {config.batch} images, {config.epochs:.1f} epochs",
        "learning": f"{config.optimizer.name}, rate {config.schedule.peak:g} ({config.schedule.shape}, "
        f"{config.schedule.warmup_steps} steps of warm-up), weight decay {config.optimizer.weight_decay:g}",
        "regularising": regularisation(config),
        "folder": str(folder.path),
    }
    for name, value in lines.items():
        line(f"{name:13}{value}")
    notes = list(data.notes)
    if config.patience is not None and data.evaluation is not None and data.evaluation.split == "test":
        notes.append("the best weights are chosen on the test images, so their accuracy will be a little too high.")
    for note in notes:
        line(f"vitrail: {words(note)}")


def smaller(config: RunConfig) -> str:
    """Name the stages with smaller images."""
    return "".join(f"; {size_text(size)} until step {end}" for _, end, size in config.phases[:-1])


def regularisation(config: RunConfig) -> str:
    """Name the settings that make a run generalise better, or faster."""
    augmentation = config.augmentation
    parts = [f"{augmentation.crop} crop"] + (["flip"] if augmentation.flip else [])
    for name in ("mixup", "cutmix"):
        parts += [f"{name} {getattr(augmentation, name):g}"] if getattr(augmentation, name) else []
    parts += [config.objective.summary] if config.objective.summary else []
    parts += [f"averaging {config.averaging:g}"] if config.averaging else []
    return ", ".join(parts)
