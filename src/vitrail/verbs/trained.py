"""A finished run as a value: its figures, its model, its report; a table in a notebook."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from vitrail.base.journal import read_rows
from vitrail.checkpoint.files import load
from vitrail.model.contract import Model
from vitrail.report.markup import table, tag, text
from vitrail.runs.config import RunConfig
from vitrail.runs.folder import RunFolder


@dataclass(frozen=True, kw_only=True, repr=False)
class TrainedRun:
    """What `vitrail.train` returns; everything lies in `folder`."""

    folder: Path
    """The folder of the run."""
    figures: Mapping[str, Any]
    """What `result.json` holds."""
    title: str = "Trained"

    @property
    def accuracy(self) -> float | None:
        """The share of right answers on the images that were not learned from; None where there are none."""
        return self.figures.get("accuracy")

    @cached_property
    def model(self) -> Model:
        """The trained model, read from its file when first asked for."""
        return load(self.model_file)

    @property
    def model_file(self) -> Path:
        """The file of the model."""
        return RunFolder(path=self.folder).model

    @property
    def report(self) -> Path:
        """The page that shows what happened."""
        return RunFolder(path=self.folder).report

    @property
    def config(self) -> RunConfig:
        """Every setting of the run."""
        return RunFolder(path=self.folder).read_config()

    @property
    def metrics(self) -> list[dict[str, Any]]:
        """The measurements, a row for each line of `metrics.jsonl`."""
        return read_rows(self.folder / "metrics.jsonl")

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as JSON holds them."""
        return dict(self.figures)

    def rows(self) -> list[tuple[str, str, str]]:
        """Return the figures and where everything lies: name, value, note."""
        figures, spent = self.figures, self.figures["cost"]
        rows = []
        if self.accuracy is not None:
            rows.append(("accuracy", f"{self.accuracy:.2%}", f"{figures['images']} images of {figures['split']}"))
        if "images_per_second" in spent:
            share = f"{spent['share_of_peak']:.0%} of peak"
            rows.append(("speed", f"{spent['images_per_second']:.0f} images/s", share))
            rows.append(("time", f"{spent['seconds']:.0f} s", f"{figures['epochs']:.1f} epochs"))
        rows.append(("model", str(self.model_file), f"{figures['weights']} weights"))
        rows.append(("report", str(self.report), "open it in a browser"))
        if skipped := figures.get("skipped"):
            rows.append(("skipped", f"{len(skipped)} broken images", f"listed in {self.folder}/skipped.jsonl"))
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
    """What `vitrail.finetune` returns: the run on all training images, and what led to its learning rate."""

    title: str = "Fine-tuned"

    @property
    def rate(self) -> float:
        """The learning rate that was chosen."""
        return float(self.figures["rate"])

    @property
    def sweep(self) -> list[dict[str, Any]]:
        """The rates that were tried, with their figures on the dev split; empty with one rate alone."""
        return list(self.figures["sweep"])

    def rows(self) -> list[tuple[str, str, str]]:
        """Return the rates that were tried, the figures of the run, and the spread over seeds."""
        rows = [
            (f"rate {row['rate']:g}", f"{row['accuracy']:.2%}", f"{row['images']} images of dev") for row in self.sweep
        ]
        rows += [(f"rate {rate:g}", "diverged", "the loss was not finite") for rate in self.figures["diverged"]]
        rows += super().rows()
        if "accuracies" in self.figures:
            mean, deviation = self.figures["accuracy_mean"], self.figures["accuracy_std"]
            seeds = f"{len(self.figures['accuracies'])} seeds"
            rows.append((seeds, f"{mean:.2%} +- {deviation:.2%}", "mean and standard deviation"))
        return rows
