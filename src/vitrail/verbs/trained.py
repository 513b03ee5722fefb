"""A finished run as a value: its figures, its model, its report; a table in a notebook."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from vitrail.base.journal import read_measurements
from vitrail.checkpoint.files import load
from vitrail.model.contract import Model
from vitrail.report.markup import table, tag, text
from vitrail.runs.config import RunConfig
from vitrail.runs.finetune import Finetuned
from vitrail.runs.folder import RunFolder
from vitrail.runs.result import Result
from vitrail.runs.series import Table


@dataclass(frozen=True, kw_only=True, repr=False)
class TrainedRun:
    """The result of `vitrail.train`; everything is in `folder`."""

    folder: Path
    """The folder of the run."""
    result: Result
    """The figures: `result.json` is this."""
    title: str = "Trained"

    @property
    def accuracy(self) -> float | None:
        """The share of right answers on images outside of training; None without any."""
        return self.result.accuracy

    @cached_property
    def model(self) -> Model:
        """The trained model, read from its file on first use."""
        return load(self.model_file)

    @property
    def model_file(self) -> Path:
        """The file of the model."""
        return RunFolder(path=self.folder).model

    @property
    def report(self) -> Path:
        """The report page."""
        return RunFolder(path=self.folder).report

    @property
    def config(self) -> RunConfig:
        """Every setting of the run."""
        return RunFolder(path=self.folder).read_config()

    @property
    def metrics(self) -> list[dict[str, Any]]:
        """The measurements, a row for each line of `metrics.jsonl`."""
        return read_measurements(self.folder / "metrics.jsonl")

    def to_dict(self) -> dict[str, Any]:
        """Return the figures for JSON."""
        return self.result.as_dict()

    def rows(self) -> list[tuple[str, str, str]]:
        """Return the figures and the paths of the files: name, value, note."""
        result, cost = self.result, self.result.cost
        rows = []
        if result.accuracy is not None:
            rows.append(("accuracy", f"{result.accuracy:.2%}", f"{result.images} images of {result.split}"))
        for name, words in (("probe_accuracy", "few-shot"), ("probe_found", "copies found")):
            if name in result.figures:
                rows.append((words, f"{result.figures[name]:.2%}", "of frozen features"))
        if cost.images_per_second is not None:
            rows.append(("speed", f"{cost.images_per_second:.0f} images/s", f"{cost.share_of_peak or 0:.0%} of peak"))
            rows.append(("time", f"{cost.seconds:.0f} s", f"{result.epochs:.1f} epochs"))
        rows.append(("model", str(self.model_file), f"{result.weights} weights"))
        rows.append(("report", str(self.report), "open it in a browser"))
        if result.skipped:
            rows.append(("skipped", f"{len(result.skipped)} broken images", f"listed in {self.folder}/skipped.jsonl"))
        return rows

    def __repr__(self) -> str:
        """Write the figures a line each."""
        return "\n".join([self.title, *(f"{name:10}{value}  ({note})" for name, value, note in self.rows())])

    def _repr_html_(self) -> str:
        """Draw the table for a notebook."""
        rows = [[text(name), text(value), text(note)] for name, value, note in self.rows()]
        return tag("div", tag("b", text(self.title)), table(["", "value", "note"], rows))


@dataclass(frozen=True, kw_only=True, repr=False)
class FinetunedRun(TrainedRun):
    """The result of `vitrail.finetune`: the run on all training images, and the sweep behind its learning rate."""

    tuned: Finetuned
    """Everything that was run."""
    title: str = "Fine-tuned"

    @property
    def rate(self) -> float:
        """The learning rate that was chosen."""
        return self.tuned.rate

    @property
    def sweep(self) -> Table:
        """The rates that were tried, with their figures on the dev split; empty with one rate alone."""
        return self.tuned.sweep

    def to_dict(self) -> dict[str, Any]:
        """Return the figures for JSON, with the rates that were tried."""
        return self.tuned.as_dict()

    def rows(self) -> list[tuple[str, str, str]]:
        """Return the rates that were tried, the figures of the run, and the spread over seeds."""
        rows = [
            (row.cell, f"{row.accuracy:.2%}", f"{row.images} images of {row.split}")
            if row.diverged is None
            else (row.cell, f"diverged at step {row.steps}", "the loss was not finite")
            for row in self.sweep.rows
        ]
        rows += super().rows()
        if (spread := self.tuned.spread) is not None:
            mean = f"{spread.accuracy_mean:.2%} +- {spread.accuracy_std:.2%}"
            rows.append((f"{len(spread.accuracies)} seeds", mean, "mean and standard deviation"))
        return rows
