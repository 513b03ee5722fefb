"""The result of a few-shot measurement, as a table."""

from dataclasses import dataclass
from typing import Any

from vitrail.base.settings import to_dict
from vitrail.base.table import Table, Tabular
from vitrail.data.dataset import Dataset
from vitrail.data.preprocessing import Preprocessing
from vitrail.evaluation.fewshot import Score


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class FewShot(Tabular):
    """The accuracy of every method with every number of shots; a notebook shows it as a table."""

    model: str
    """Name of the model: its file, if it has one."""
    dataset: Dataset
    """The test split."""
    images: int
    """Its images that have a class and could be read."""
    preprocessing: Preprocessing
    """How images became input."""
    scores: tuple[Score, ...]
    """A score for each number of shots and each method."""
    notes: tuple[str, ...] = ()
    """What the user should know, a sentence each."""

    @property
    def methods(self) -> tuple[str, ...]:
        """The names of the methods; with several strengths, least squares has a name for each."""
        return tuple(dict.fromkeys(score.method for score in self.scores))

    @property
    def title(self) -> str:
        """The model and the data."""
        images = f"{self.images:,} images of {self.dataset.split}, {len(self.dataset.labels)} classes"
        return f"Few-shot accuracy of {self.model} on {self.dataset.where} ({images})"

    @property
    def columns(self) -> tuple[str, ...]:
        """The heading of the table."""
        return ("shots", "images", *self.methods)

    @property
    def table(self) -> list[tuple[str, ...]]:
        """A row for each number of shots: shots, training images, and the accuracy of each method in percent."""
        cells = {(score.shots, score.method): _cell(score) for score in self.scores}
        return [
            (str(shots or "all"), f"{images:,}", *(cells[shots, method] for method in self.methods))
            for shots, images in dict.fromkeys((score.shots, score.images) for score in self.scores)
        ]

    @property
    def unit(self) -> str:
        """A sentence about the numbers of the table."""
        draws = max((len(score.accuracies) for score in self.scores), default=0)
        return f"Percent; mean and standard deviation over {draws} draws." if draws > 1 else "Percent."

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values for JSON."""
        return {
            "model": self.model,
            "data": self.dataset.where,
            "split": self.dataset.split,
            "images": self.images,
            "classes": len(self.dataset.labels),
            "preprocessing": to_dict(self.preprocessing),
            "results": [
                {
                    "shots": "all" if score.shots is None else score.shots,
                    "method": score.method,
                    "training_images": score.images,
                    "accuracies": list(score.accuracies),
                    "mean": score.mean,
                    "std": score.spread,
                }
                for score in self.scores
            ],
        }

    def tables(self) -> list[Table]:
        """Return the accuracies as a table."""
        notes = (self.unit, *self.notes)
        return [Table(title=self.title, columns=self.columns, rows=tuple(self.table), notes=notes)]


def _cell(score: Score) -> str:
    spread = "" if score.spread is None else f" +- {100 * score.spread:.2f}"
    return f"{100 * score.mean:.2f}{spread}"
