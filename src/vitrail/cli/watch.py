"""What a person sees of a run: its settings before, a bar or lines during, the figures and the next command after."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from vitrail.base.printable import printable
from vitrail.cli.names import in_flags
from vitrail.cli.report import counted, print_json, print_table
from vitrail.cli.say import line, say
from vitrail.model.cost import cost
from vitrail.model.patches import size_text
from vitrail.runs.config import RunConfig
from vitrail.runs.folder import RunFolder
from vitrail.runs.result import Result
from vitrail.runs.train import Run

Trained = tuple[Result, RunFolder]
"""The figures of a run, and where it lies."""
QUIET_SECONDS = 5.0
"""Without a terminal, at least so long between two lines."""


class Watcher:
    """Shows the measurements of a run as they come: a bar on a terminal, plain lines elsewhere; all on stderr."""

    def __init__(self, config: RunConfig, *, quiet: bool) -> None:
        self.steps, self.quiet = config.steps, quiet
        self.values: dict[str, float] = {}
        self.printed = self.began = time.monotonic()
        self.first = 0
        console = Console(stderr=True)
        self.bar: Progress | None = None
        if console.is_terminal and not quiet:
            columns = (BarColumn(), TextColumn("{task.percentage:3.0f}%"), TextColumn("{task.description}"))
            self.bar = Progress(*columns, TimeRemainingColumn(), console=console)
            self.task = self.bar.add_task("", total=self.steps)

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
        """Say from where the run goes on."""
        self.first, self.began = step, time.monotonic()
        if step:
            self.note(f"resuming from step {step} of {self.steps}.")

    def note(self, sentence: str) -> None:
        """Say something besides."""
        if self.quiet:
            return
        if self.bar is None:
            say(sentence)
        else:
            text = f"vitrail: {printable(in_flags(sentence))}"
            self.bar.console.print(text, markup=False, highlight=False)

    def __call__(self, step: int, values: dict[str, float]) -> None:
        """Show the values of a step."""
        if "bad_step" in values:
            self.note(f"the loss of step {step} was not finite; its batch is kept and passed over.")
            return
        self.values |= values
        if self.quiet:
            return
        text = describe(self.values)
        if self.bar is not None:
            self.bar.update(self.task, completed=step, description=text)
            return
        now, evaluated = time.monotonic(), any(name.startswith("val_") for name in values)
        if evaluated or now - self.printed >= QUIET_SECONDS:
            self.printed = now
            left = (now - self.began) / max(step - self.first, 1) * (self.steps - step)
            line(f"step {step}/{self.steps}  {text}  {left:.0f} s left")


def describe(values: dict[str, float]) -> str:
    """Write measurements in a line."""
    parts = [f"loss {values['loss']:.3f}"] if "loss" in values else []
    parts += [f"accuracy {values['accuracy']:.1%}"] if "accuracy" in values else []
    parts += [f"held-out {values['val_accuracy']:.1%}"] if "val_accuracy" in values else []
    parts += [f"{values['images_per_second']:.0f} images/s"] if "images_per_second" in values else []
    return "  ".join(parts)


@contextmanager
def watched(config: RunConfig, words: str, *, quiet: bool) -> Iterator[Watcher]:
    """Show one run of a series, which a few words describe."""
    with Watcher(config, quiet=quiet) as watcher:
        watcher.note(words)
        yield watcher


def print_choices(run: Run) -> None:
    """Print, before it starts, what the run is."""
    config, data, folder = run.config, run.data, run.folder
    need, model = cost(config.model), config.model
    held = "nothing" if data.held is None else f"{len(data.held)} of {data.held.split}"
    lines = {
        "data": f"{config.data.where}: {len(data.train)} images of {data.classes} classes; held out: {held}",
        "model": f"{model.summary}, {counted(need.parameters)} parameters, {counted(need.macs, 'MACs')} an image",
        "images": f"{size_text(config.preprocessing.image_size)} pixels, {model.channels} channels",
        "length": f"{config.steps} steps of {config.batch} images, {config.epochs:.1f} epochs",
        "learning": f"{config.optimizer.name}, rate {config.schedule.peak:g} ({config.schedule.shape}, "
        f"{config.schedule.warmup_steps} steps of warm-up), weight decay {config.optimizer.weight_decay:g}",
        "regularising": regularisation(config),
        "folder": str(folder.path),
    }
    for name, value in lines.items():
        line(f"{name:13}{value}")
    notes = list(data.notes)
    if config.patience is not None and data.held is not None and data.held.split == "test":
        notes.append("the best weights are chosen on the test images, so their accuracy will be a little too high.")
    for note in notes:
        say(note)


def regularisation(config: RunConfig) -> str:
    """Name what makes a run generalise, or go faster."""
    augmentation = config.augmentation
    parts = [f"{augmentation.crop} crop"] + (["flip"] if augmentation.flip else [])
    for name in ("mixup", "cutmix"):
        parts += [f"{name} {getattr(augmentation, name):g}"] if getattr(augmentation, name) else []
    parts += [config.objective.summary] if config.objective.summary else []
    parts += [f"averaging {config.averaging:g}"] if config.averaging else []
    return ", ".join(parts)


def as_json(done: Trained) -> None:
    """Write the figures of a run to stdout."""
    result, folder = done
    print_json({"run": str(folder.path)} | result.as_dict())


def print_result(done: Trained) -> None:
    """Say how good the model is, where everything lies, and what to type next."""
    result, folder = done
    print_table("Trained", ("", "value", "note"), result_rows(result, folder))
    print(f"\nNext: vitrail predict {folder.model} IMAGE")


def result_rows(result: Result, folder: RunFolder) -> list[tuple[str, str, str]]:
    """Tell the figures of a run, and where everything lies."""
    cost = result.cost
    rows = []
    if result.accuracy is not None:
        rows.append(("accuracy", f"{result.accuracy:.2%}", f"{result.images} images of {result.split}"))
    if cost.images_per_second is not None:
        rows.append(("speed", f"{cost.images_per_second:.0f} images/s", f"{cost.share_of_peak or 0:.0%} of peak"))
        rows.append(("time", f"{cost.seconds:.0f} s", f"{result.epochs:.1f} epochs"))
    rows.append(("model", str(folder.model), f"{result.weights} weights"))
    rows.append(("report", str(folder.report), "open it in a browser"))
    if result.skipped:
        rows.append(("skipped", f"{len(result.skipped)} broken images", f"listed in {folder.path}/skipped.jsonl"))
    return rows
