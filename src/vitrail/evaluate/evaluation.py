"""One evaluation: choose the classes, ask the model about every image, work out the figures."""

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from vitrail.base.errors import ConfigError, ImageError, InputError
from vitrail.base.progress import Progress, silent
from vitrail.base.ranks import Ranks
from vitrail.data.budget import Budget, Skipped
from vitrail.data.classes import few
from vitrail.data.dataset import Dataset
from vitrail.data.loader import evaluation_batches
from vitrail.data.sampler import evaluation_shard
from vitrail.evaluate.bootstrap import FEWEST
from vitrail.evaluate.classify import Answers, answer
from vitrail.evaluate.finite import refuse_bad_numbers
from vitrail.evaluate.metrics import TOP, Metrics, measure, summary
from vitrail.evaluate.real import Real, RealLists, image_numbers, measure_real
from vitrail.evaluate.subset import Choice, Scored
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
                raise ConfigError(f"{name} is {getattr(self, name)}, but must be at least {least}.")
        Budget.parse(self.skip_broken)


@dataclass(frozen=True, kw_only=True, eq=False)
class Evaluation:
    """What came out."""

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

    def report(self) -> dict[str, Any]:
        """Return the figures as what JSON can hold."""
        made: dict[str, Any] = {} if self.metrics is None else summary(self.metrics, self.choice.labels)
        if self.real is not None:
            counted = int(self.real.counted.sum())
            made["real"] = {"images": counted, **asdict(self.real.accuracy)}
        made["scored_classes"], made["model_classes"] = len(self.choice.labels), self.choice.num_outputs
        made["skipped"] = [{"name": name, "reason": reason} for name, reason in self.skipped]
        return made


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
