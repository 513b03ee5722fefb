"""The content of a report: the plain values of one run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from vitrail.base.errors import InputError
from vitrail.base.scores import Confusion, Scores
from vitrail.base.shapes import Pixels
from vitrail.report.overlay import Picture
from vitrail.report.section import Section


@dataclass(frozen=True, kw_only=True, eq=False)
class EvaluationStory:
    """The answers of a model on a split."""

    split: str
    """The split that was evaluated."""
    labels: tuple[str, ...]
    """The class names."""
    scores: Scores
    """The scores of each class."""
    confusion: Confusion | None
    """Images of each true class (row) that got each answer (column); None when there are too many classes to show."""
    top5: float | None = None
    """Share of the images whose class is among the five most likely."""

    def __post_init__(self) -> None:
        """Refuse counts that are not of these classes."""
        if len(self.scores.support) != len(self.labels):
            raise InputError(
                f"there are scores of {len(self.scores.support)} classes and names of {len(self.labels)}; "
                "give both for each class."
            )
        if self.confusion is None:
            return
        rows, columns = self.confusion.shape
        if not rows == columns == len(self.labels) > 0:
            raise InputError(
                f"the confusion matrix is {rows}x{columns}, but there are {len(self.labels)} classes; "
                "give one row and one column for each of at least one class."
            )
        if (low := int(self.confusion.min())) < 0:
            raise InputError(f"the confusion matrix has the count {low}; counts of images are 0 or more.")


@dataclass(frozen=True, kw_only=True, eq=False)
class Mistake:
    """One image with a wrong answer."""

    pixels: Pixels
    """The image as it is shown."""
    name: str
    """The name of the image."""
    truth: str
    """Its class."""
    answer: str
    """The class that the model gave."""
    confidence: float
    """The probability that the model gave to its answer."""
    overlay: Picture | None = None
    """The image below a map of what the model looked at for its answer."""


@dataclass(frozen=True, kw_only=True)
class DataStory:
    """The training and evaluation images of a run."""

    where: str
    """The path or name of the data."""
    splits: Mapping[str, Mapping[str, int]]
    """The images of each class, for each split."""
    image_size: tuple[int, int] | None = None
    """Height and width of what the model sees, in pixels."""
    channels: int = 3
    """Channels of the images."""
    skipped: int = 0
    """Images that were left out because they could not be read."""


@dataclass(frozen=True, kw_only=True, eq=False)
class RunStory:
    """The content of the page of one run."""

    title: str
    """The name of the run."""
    metrics: Sequence[Mapping[str, object]]
    """Rows as in `metrics.jsonl`: `step` and any of `loss`, `accuracy`, `learning_rate`, `gradient_norm`,
    `val_loss`, `val_accuracy`, `val_top5`."""
    data: DataStory
    """The data."""
    split: str | None = None
    """The split that was evaluated; None when no images were held out."""
    sections: Sequence[Section] = ()
    """Sections of the run's evaluators, and of the runs before it."""
    cost: Mapping[str, float | int | str]
    """The cost of the run, in order; the first three entries also stand at the top of the page."""
    settings: Mapping[str, Any]
    """Every setting, nested as in `config.json`."""
    notes: Sequence[str] = ()
    """Sentences that a reader should see first."""
