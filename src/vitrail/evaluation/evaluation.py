"""One evaluation: choose the classes, ask the model about every image, work out the figures."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int

from vitrail.base.errors import ConfigError, ImageError, InputError
from vitrail.base.progress import Progress, silent
from vitrail.base.ranks import Ranks
from vitrail.base.table import Table, Tabular
from vitrail.data.budget import Budget, Skipped
from vitrail.data.classes import few
from vitrail.data.dataset import Dataset
from vitrail.data.loader import evaluation_batches
from vitrail.data.sampler import evaluation_shard
from vitrail.evaluation.bootstrap import FEWEST, Interval
from vitrail.evaluation.classify import Answers, answer
from vitrail.evaluation.figures import FIGURES, written
from vitrail.evaluation.finite import refuse_bad_numbers
from vitrail.evaluation.metrics import TOP, Metrics, measure, summary
from vitrail.evaluation.real import Real, RealLists, image_numbers, measure_real
from vitrail.evaluation.subset import Choice, Scored
from vitrail.runtime.engine import Engine


@dataclass(frozen=True, kw_only=True)
class EvaluationConfig:
    """How an evaluation is done; the figures do not depend on the first two."""

    batch: int = 64
    """Images that go through the model at once, on each rank."""
    workers: int = 0
    """Processes that read images; 0 reads in this one."""
    skip_broken: str = "0"
    """How many images may be broken, such as 5 or 1%."""
    resamples: int = 1000
    """Resamples of the bootstrap."""
    seed: int = 0
    """Decides the resamples."""

    def __post_init__(self) -> None:
        """Refuse what cannot be done, before anything is read."""
        for name, least in (("batch", 1), ("workers", 0), ("resamples", FEWEST)):
            if getattr(self, name) < least:
                raise ConfigError(f"`{name}` is {getattr(self, name)}, but must be at least {least}.")
        Budget.parse(self.skip_broken)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Evaluation(Tabular):
    """How a model did on some images; a notebook shows it as a table."""

    dataset: Dataset
    """The images that the model was asked about; their classes are the scored ones."""
    choice: Choice
    """The scored classes."""
    answers: Answers
    """An answer for each image."""
    metrics: Metrics | None
    """The figures; None when no image has a class, and ReaL alone is measured."""
    real: Real | None
    """The figures by ReaL's labels, where they were given."""
    skipped: tuple[Skipped, ...]
    """Images that could not be read, and why."""
    model: str = "the model"
    """What the model is called: its file, if it has one."""
    digest: str | None = None
    """SHA-256 of that file."""
    notes: tuple[str, ...] = ()
    """What the user should know about the figures, a sentence each."""
    files: Mapping[str, Path] = field(default_factory=dict)
    """What was written: `csv`, `html`."""

    @property
    def figures(self) -> dict[str, Interval]:
        """Every figure with its interval, the most important first: `accuracy`, `top5`, ..., `loss`."""
        known = dict(self.metrics.figures) if self.metrics is not None else {}
        if self.real is not None:
            known["real"] = self.real.accuracy
        return {name: known[name] for name in FIGURES if name in known}

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
        """What was measured on what."""
        return f"{self.model} on {described(self.dataset)}"

    @property
    def counted(self) -> str:
        """A sentence about what was counted."""
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
        """Return everything as what JSON can hold."""
        made: dict[str, Any] = {
            "model": self.model,
            "sha256": self.digest,
            "data": self.dataset.where,
            "split": self.dataset.split,
            **{kind: str(self.files[kind]) if kind in self.files else None for kind in ("csv", "html")},
        }
        made |= {} if self.metrics is None else summary(self.metrics, self.labels)
        if self.real is not None:
            counted = int(self.real.counted.sum())
            made["real"] = {"images": counted, **asdict(self.real.accuracy)}
        made["scored_classes"], made["model_classes"] = len(self.labels), self.choice.num_outputs
        made["skipped"] = [{"name": name, "reason": reason} for name, reason in self.skipped]
        return made | {"notes": list(self.notes)}

    def rows(self) -> list[tuple[str, str, str]]:
        """Return the figures as they are written: name, value, interval."""
        return [
            (FIGURES[name], written(name, figure.value), f"{written(name, figure.low)} to {written(name, figure.high)}")
            for name, figure in self.figures.items()
        ]

    def tables(self) -> list[Table]:
        """Return the figures as a table."""
        columns, notes = ("", "value", "95% interval"), (self.counted, *self.notes)
        return [Table(title=self.title, columns=columns, rows=tuple(self.rows()), notes=notes)]


def described(dataset: Dataset) -> str:
    """Say which images these are."""
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
    """Ask a network about all images of a data set whose class is scored, and measure its answers.

    With `real`, images without a class are asked about too. Every rank takes part, and each returns the same.
    """
    ranks = ranks or Ranks()
    asked = scored_images(dataset, choice, keep_all=real is not None)
    numbers = None if real is None else image_numbers(asked)
    left = Budget.parse(config.skip_broken).left(len(asked), dataset.skipped)
    batches = evaluation_batches(
        asked,
        engine.preprocessing,
        batch=config.batch,
        rank=ranks.rank,
        world=ranks.world,
        workers=config.workers,
        skip_broken=left,
    )
    shard = evaluation_shard(len(asked), rank=ranks.rank, world=ranks.world)
    told: Progress = progress if ranks.first else silent
    batches = told(batches, total=-(-len(shard) // config.batch), title="evaluating")
    top = min(TOP, len(choice.labels))
    answers = answer(Scored(engine, choice), batches, asked.targets, ranks, top=top)
    skipped = tuple(_reason(asked, int(index)) for index in np.flatnonzero(~answers.answered))
    if skipped:  # ranks have kept count of their own
        (left or Budget()).spend(skipped, len(asked), where=dataset.where)
    refuse_bad_numbers("scores", asked, answers.answered & ~np.isfinite(answers.confidence))
    drawn = {"resamples": config.resamples, "seed": config.seed}
    labelled = bool((asked.targets >= 0).any())
    return Evaluation(
        dataset=asked,
        choice=choice,
        answers=answers,
        metrics=measure(answers, len(choice.labels), **drawn) if labelled else None,
        real=None if real is None or numbers is None else measure_real(answers, numbers, real, **drawn),
        skipped=(*dataset.skipped, *skipped),
    )


def scored_images(dataset: Dataset, choice: Choice, *, keep_all: bool) -> Dataset:
    """Return the images whose class is scored, or all of them, with scored classes in place of their own."""
    asked = replace(dataset, targets=choice.targets(dataset.targets), labels=choice.labels)
    if keep_all:
        return asked
    labelled = np.flatnonzero(asked.targets >= 0)
    if not len(labelled):
        raise InputError(
            f"{dataset.where} has no image of a class that is scored ({few(choice.labels)}); choose another split, or "
            "map more classes."
        )
    return asked if len(labelled) == len(asked) else asked.take(labelled)


def _reason(dataset: Dataset, index: int) -> Skipped:
    """Say why an image could not be read; another rank may have met it, so it is tried once more."""
    name = dataset.name(index)
    try:
        dataset.image(index)
    except ImageError as error:
        return name, str(error).removeprefix(f"{name}: ")
    return name, "it could not be brought to the model's channels"
