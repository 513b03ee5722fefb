"""One evaluation: classify every image over the chosen classes, and compute the figures."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int

from vitrail.base.errors import ImageError, InputError
from vitrail.base.numbers import MOST_BATCH, MOST_SEED, MOST_WORKERS, check_whole
from vitrail.base.progress import Progress, silent
from vitrail.base.ranks import Ranks
from vitrail.base.table import Table, Tabular
from vitrail.data.budget import Budget, Skipped
from vitrail.data.classes import few
from vitrail.data.dataset import Dataset
from vitrail.evaluation.batches import ranked_batches
from vitrail.evaluation.bootstrap import FEWEST, MOST, Interval
from vitrail.evaluation.classify import Answers, answer
from vitrail.evaluation.figures import FIGURES, written
from vitrail.evaluation.finite import refuse_bad_numbers
from vitrail.evaluation.metrics import TOP, Metrics, measure, summary
from vitrail.evaluation.real import Real, RealLists, image_numbers, measure_real
from vitrail.evaluation.subset import Choice, Scored
from vitrail.runtime.engine import Engine


@dataclass(frozen=True, kw_only=True)
class EvaluationConfig:
    """Settings of an evaluation; the figures do not depend on the first two."""

    batch: int = 64
    """Images that go through the model at once, on each rank."""
    workers: int = 0
    """Processes that read images; 0 reads in this one."""
    skip_broken: str = "0"
    """How many images may be broken, such as 5 or 1%."""
    resamples: int = 1000
    """Resamples of the bootstrap."""
    seed: int = 0
    """Seed of the resamples."""

    def __post_init__(self) -> None:
        """Refuse wrong values before anything is read."""
        check_whole("batch", self.batch, most=MOST_BATCH)
        check_whole("workers", self.workers, least=0, most=MOST_WORKERS)
        check_whole("resamples", self.resamples, least=FEWEST, most=MOST)
        check_whole("seed", self.seed, least=-MOST_SEED, most=MOST_SEED)
        Budget.parse(self.skip_broken)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Evaluation(Tabular):
    """The figures of a model on some images; a notebook shows them as a table."""

    dataset: Dataset
    """The images that were classified; their classes are the scored ones."""
    choice: Choice
    """The scored classes."""
    answers: Answers
    """An answer for each image."""
    metrics: Metrics | None
    """The figures; None when no image has a class, and ReaL alone is measured."""
    real: Real | None
    """The figures by ReaL's labels, if there are any."""
    skipped: tuple[Skipped, ...]
    """Images that could not be read, and why."""
    model: str = "the model"
    """Name of the model: its file, if it has one."""
    digest: str | None = None
    """SHA-256 of that file."""
    notes: tuple[str, ...] = ()
    """What the user should know about the figures, a sentence each."""
    files: Mapping[str, Path] = field(default_factory=dict)
    """Files that were written: `csv`, `html`."""

    @property
    def figures(self) -> dict[str, Interval]:
        """Every figure with its interval, the most important first: `accuracy`, `top5`, ..., `loss`."""
        figures = dict(self.metrics.figures) if self.metrics is not None else {}
        if self.real is not None:
            figures["real"] = self.real.accuracy
        return {name: figures[name] for name in FIGURES if name in figures}

    @property
    def accuracy(self) -> float:
        """The share of right answers; NaN when no image has a class."""
        return float("nan") if self.metrics is None else self.metrics.figures["accuracy"].value

    @property
    def labels(self) -> tuple[str, ...]:
        """The classes that are scored, in the order of `confusion`."""
        return self.choice.labels

    @property
    def confusion(self) -> Int[np.ndarray, "true predicted"]:
        """How many images of each class got each answer."""
        return self.answers.confusion(len(self.labels))

    @property
    def title(self) -> str:
        """The model and the data."""
        return f"{self.model} on {described(self.dataset)}"

    @property
    def counted(self) -> str:
        """A sentence with the numbers of images and classes."""
        parts = []
        if self.metrics is not None:
            of = "" if len(self.labels) == self.choice.num_outputs else f" of {self.choice.num_outputs:,}"
            parts.append(f"{self.metrics.images:,} images, scored over {len(self.labels):,}{of} classes")
        if self.real is not None:
            parts.append(f"{int(self.real.counted.sum()):,} images with labels of ReaL")
        if self.skipped:
            parts.append(f"{len(self.skipped):,} could not be read")
        return "; ".join(parts) + "."

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values for JSON."""
        content: dict[str, Any] = {
            "model": self.model,
            "sha256": self.digest,
            "data": self.dataset.where,
            "split": self.dataset.split,
            **{kind: str(self.files[kind]) if kind in self.files else None for kind in ("csv", "html")},
        }
        content |= {} if self.metrics is None else summary(self.metrics, self.labels)
        if self.real is not None:
            images = int(self.real.counted.sum())
            content["real"] = {"images": images, **asdict(self.real.accuracy)}
        content["scored_classes"], content["model_classes"] = len(self.labels), self.choice.num_outputs
        content["skipped"] = [{"name": name, "reason": reason} for name, reason in self.skipped]
        return content | {"notes": list(self.notes)}

    def rows(self) -> list[tuple[str, str, str]]:
        """Return the figures as text: name, value, interval."""
        return [
            (FIGURES[name], written(name, figure.value), f"{written(name, figure.low)} to {written(name, figure.high)}")
            for name, figure in self.figures.items()
        ]

    def tables(self) -> list[Table]:
        """Return the figures as a table."""
        columns, notes = ("", "value", "95% interval"), (self.counted, *self.notes)
        return [Table(title=self.title, columns=columns, rows=tuple(self.rows()), notes=notes)]


def described(dataset: Dataset) -> str:
    """Name the split and the data set."""
    return f"the {dataset.split} split of {dataset.where}" if dataset.split else f"all of {dataset.where}"


def evaluate(
    engine: Engine,
    dataset: Dataset,
    choice: Choice,
    config: EvaluationConfig,
    *,
    ranks: Ranks | None = None,
    real: RealLists | None = None,
    progress: Progress = silent,
) -> Evaluation:
    """Classify all images of a data set whose class is scored, and measure the answers.

    With `real`, images without a class are classified too. All ranks call it together; each returns the same.
    """
    ranks = ranks or Ranks()
    images = scored_images(dataset, choice, keep_all=real is not None)
    numbers = None if real is None else image_numbers(images)
    budget = Budget.parse(config.skip_broken).left(len(images), dataset.skipped)
    batches = ranked_batches(
        images,
        engine.preprocessing,
        ranks,
        batch=config.batch,
        workers=config.workers,
        skip_broken=budget,
        progress=progress,
        title="evaluating",
    )
    top = min(TOP, len(choice.labels))
    answers = answer(Scored(engine, choice), batches, images.targets, ranks, top=top)
    skipped = tuple(_reason(images, int(index)) for index in np.flatnonzero(~answers.answered))
    if skipped:  # each rank counted only its own
        (budget or Budget()).spend(skipped, len(images), where=dataset.where)
    refuse_bad_numbers("scores", images, answers.answered & ~np.isfinite(answers.confidence))
    bootstrap = {"resamples": config.resamples, "seed": config.seed}
    labelled = bool((images.targets >= 0).any())
    return Evaluation(
        dataset=images,
        choice=choice,
        answers=answers,
        metrics=measure(answers, len(choice.labels), **bootstrap) if labelled else None,
        real=None if real is None or numbers is None else measure_real(answers, numbers, real, **bootstrap),
        skipped=(*dataset.skipped, *skipped),
    )


def scored_images(dataset: Dataset, choice: Choice, *, keep_all: bool) -> Dataset:
    """Return the images whose class is scored, or all of them, with scored classes in place of their own."""
    images = replace(dataset, targets=choice.targets(dataset.targets), labels=choice.labels)
    if keep_all:
        return images
    labelled = np.flatnonzero(images.targets >= 0)
    if not len(labelled):
        raise InputError(
            f"{dataset.where} has no image of a class that is scored ({few(choice.labels)}); choose another split, or "
            "map more classes."
        )
    return images if len(labelled) == len(images) else images.take(labelled)


def _reason(dataset: Dataset, index: int) -> Skipped:
    """Return why an image could not be read; another rank may have read it, so it is tried again."""
    name = dataset.name(index)
    try:
        dataset.image(index)
    except ImageError as error:
        return name, str(error).removeprefix(f"{name}: ")
    return name, "it could not be brought to the model's channels"
