"""What a model answers: for one image, and for many in a file."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vitrail.base.errors import ImageError
from vitrail.base.table import Table, Tabular, bar

MOST_CLASSES = 10
"""Classes that a summary lists."""

Answer = tuple[tuple[int, float], ...] | ImageError
"""The most probable classes by number, the first one first; or why there is no answer."""
DIGITS = 7
"""Significant digits of a probability: what float32 carries."""


def rounded(value: float) -> float:
    """Return a probability with the digits that it has."""
    return float(f"{value:.{DIGITS}g}")


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """The most probable classes of one image."""

    name: str
    """The path of the image, or its place among those given."""
    top: tuple[tuple[str, float], ...]
    """The most probable classes with their probabilities, the first one first."""

    @property
    def label(self) -> str:
        """The most probable class."""
        return self.top[0][0]

    @property
    def probability(self) -> float:
        """The softmax probability of that class."""
        return self.top[0][1]

    def __str__(self) -> str:
        """Write it in a line."""
        return f"{self.name}: " + ", ".join(f"{label} {probability:.1%}" for label, probability in self.top)

    def _repr_html_(self) -> str:
        """Draw a bar for each class, for a notebook."""
        rows = tuple((label, f"{probability:.1%}", bar(probability)) for label, probability in self.top)
        return Table(title=self.name, columns=("class", "probability", ""), rows=rows).html()


@dataclass(frozen=True, kw_only=True, repr=False)
class PredictionFile(Tabular):
    """A file of predictions, and how many images are in it."""

    out: Path
    """The file with all the answers."""
    images: int
    """How many rows it has."""
    before: int
    """How many of them were answered by an earlier start."""
    failed: int
    """How many images could not be read."""
    failures: tuple[tuple[str, str], ...]
    """The first of these, and why."""
    labels: dict[str, int]
    """How many images each class was answered for, the most frequent first."""

    def tables(self) -> list[Table]:
        """Return how many images each of the most frequent classes has."""
        rows = tuple((label, f"{count:,}") for label, count in list(self.labels.items())[:MOST_CLASSES])
        others = len(self.labels) - len(rows)
        notes = [f"and {others:,} other classes."] if others else []
        notes += [f"{self.before:,} answers were there from before."] if self.before else []
        notes += [f"{self.failed:,} images could not be read; their rows have the error."] if self.failed else []
        title = f"{self.images:,} images in {self.out}"
        return [Table(title=title, columns=("class", "images"), rows=rows, notes=tuple(notes))]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values for JSON."""
        return {
            "out": str(self.out),
            "images": self.images,
            "before": self.before,
            "failed": self.failed,
            "failures": [{"path": name, "error": reason} for name, reason in self.failures],
            "labels": self.labels,
        }
