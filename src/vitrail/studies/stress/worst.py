"""The images that a stress breaks first: right when clean, and wrong with the least change."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from vitrail.base.errors import ImageError
from vitrail.base.shapes import NewPixels, Pixels
from vitrail.data.pixels.decode import to_channels
from vitrail.data.transforms import preprocess
from vitrail.studies.stress.changes import Level
from vitrail.studies.stress.measure import Answers, Measuring, stressed
from vitrail.studies.stress.stress_test import StressTest


@dataclass(frozen=True, kw_only=True, eq=False)
class Worst:
    """One image that a model answers rightly when it is clean, and wrongly under stress."""

    test: StressTest
    level: Level
    model: str
    image: str
    """The name of the image."""
    truth: str
    answer: str
    confidence: float
    """The probability of the wrong answer."""
    clean: Pixels
    changed: NewPixels


@dataclass(frozen=True, kw_only=True)
class _Break:
    """Where an answer breaks: sorted from the worst."""

    rank: int
    confidence: float
    model: int
    column: int
    index: int


def worst_images(measuring: Measuring, answers: Answers) -> tuple[Worst, ...]:
    """Return for each test the image that breaks at the mildest level, and of those the surest wrong answer."""
    broken = ((test, _first_break(answers, test)) for test in measuring.tests)
    shown = (_shown(measuring, answers, test, place) for test, place in broken if place is not None)
    return tuple(worst for worst in shown if worst is not None)


def _first_break(answers: Answers, test: StressTest) -> _Break | None:
    columns = [(number, level) for number, (owner, level) in enumerate(answers.columns) if owner is test]
    columns.sort(key=lambda column: (abs(column[1] - test.start), column[1]))
    for rank, (column, _) in enumerate(columns):
        places = [place for model in range(len(answers.targets)) for place in _breaks(answers, model, column, rank)]
        if places:
            return max(places, key=lambda place: place.confidence)
    return None


def _breaks(answers: Answers, model: int, column: int, rank: int) -> Sequence[_Break]:
    """Return the surest wrong answer of a model in one column, if it has one."""
    if not answers.measured(model, column):
        return ()
    truth = answers.targets[model]
    lost = answers.counted & (answers.predicted[model, 0] == truth) & (answers.predicted[model, column] != truth)
    if not lost.any():
        return ()
    index = int(np.where(lost, answers.confidence[model, column], -1.0).argmax())
    chance = float(answers.confidence[model, column, index])
    return (_Break(rank=rank, confidence=chance, model=model, column=column, index=index),)


def _shown(measuring: Measuring, answers: Answers, test: StressTest, place: _Break) -> Worst | None:
    """Make the stressed image again, which nobody has stored."""
    contestant, level = measuring.contestants[place.model], answers.columns[place.column].level
    try:
        image = measuring.dataset.image(place.index)
    except ImageError:
        return None
    (subject,) = measuring.subjects([place.index], [image])
    if test.kind == "pixels":
        changed = stressed(subject, test, level)
    elif test.kind == "attack":
        targets = answers.targets[place.model, [place.index]]
        changed = measuring.attacked(contestant, [subject], targets, test, level)[0].round().to(torch.uint8).cpu()
    else:
        how = replace(contestant.engine.preprocessing, image_size=contestant.size_at(level))
        changed = preprocess(to_channels(image, how.channels), how)
    labels = contestant.choice.labels
    return Worst(
        test=test,
        level=level,
        model=contestant.name,
        image=measuring.dataset.name(place.index),
        truth=labels[answers.targets[place.model, place.index]],
        answer=labels[answers.predicted[place.model, place.column, place.index]],
        confidence=place.confidence,
        clean=subject.pixels,
        changed=changed,
    )
