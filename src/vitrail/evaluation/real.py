"""ImageNet-ReaL: the validation images of ImageNet with every label that people judged right (Table 2).

`real.json` has a list of classes for each of the 50,000 images, in the order of the numbers in their names. An image
with an empty list is left out; an answer is right if it is in the list. Classes are numbers in ImageNet-1k's usual
order, which are the model's outputs.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Int

from vitrail.base.errors import InputError
from vitrail.base.reading import read_json
from vitrail.data.dataset import UNLABELLED, Dataset
from vitrail.evaluation.bootstrap import Interval
from vitrail.evaluation.classify import Answers
from vitrail.evaluation.metrics import share
from vitrail.evaluation.subset import Choice, choose, every_class

IMAGES, CLASSES = 50_000, 1000
_NUMBER = re.compile(r"ILSVRC2012_val_(\d{8})(?!\d)", re.I)

RealLists = Sequence[Sequence[int]]
"""The right classes of each validation image."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Real:
    """The answers measured by ReaL's labels."""

    counted: Bool[np.ndarray, "image"]
    """Images that were read and whose list is not empty."""
    right: Bool[np.ndarray, "image"]
    """Images whose answer is in their list."""
    accuracy: Interval
    """The share of right answers among the counted images."""


def read_real(path: Path) -> RealLists:
    """Read real.json, or refuse a file that is not ReaL's."""
    lists = read_json(path)
    if not isinstance(lists, list) or len(lists) != IMAGES:
        has = f"a list of {len(lists):,}" if isinstance(lists, list) else "not a list"
        raise InputError(f"{path} is {has}, but ReaL has a list of classes for each of {IMAGES:,} validation images.")
    for number, classes in enumerate(lists, start=1):
        if not isinstance(classes, list) or not all(type(one) is int and 0 <= one < CLASSES for one in classes):
            raise InputError(
                f"{path} has {json.dumps(classes)[:60]} for image {number}, but needs a list of numbers from 0 to "
                f"{CLASSES - 1}."
            )
    return lists


def image_numbers(dataset: Dataset) -> Int[np.ndarray, "image"]:
    """Return the number in the name of each image, from 1 to 50,000."""
    names = [dataset.name(index) for index in range(len(dataset))]
    matches = [_NUMBER.search(name.replace("\\", "/").rpartition("/")[2]) for name in names]
    numbers = np.array([int(match[1]) if match else 0 for match in matches], np.int64)
    bad = np.flatnonzero((numbers < 1) | (numbers > IMAGES))
    if len(bad):
        raise InputError(
            f"{len(bad):,} of {len(names):,} images of {dataset.where} have no number of a validation image in their "
            f"name, such as {names[bad[0]]}; ReaL needs names such as ILSVRC2012_val_00000001.JPEG, up to {IMAGES}."
        )
    return numbers


def check_outputs(num_classes: int) -> None:
    """Refuse a model whose outputs are not ImageNet-1k's classes."""
    if num_classes != CLASSES:
        raise InputError(
            f"the model has {num_classes:,} classes, but ReaL's labels are of ImageNet-1k's {CLASSES:,}, in their "
            "usual order; choose a model with that head."
        )


def choose_with_real(dataset: Dataset, labels: Sequence[str] | None, num_classes: int) -> Choice:
    """Score all classes of the model; where names of the data do not match them, measure ReaL alone."""
    unnamed = every_class(labels, num_classes, np.full(len(dataset.labels), UNLABELLED))
    if not (dataset.targets >= 0).any():
        return unnamed
    try:
        return choose(dataset, labels, num_classes, all_classes=True)
    except InputError as error:
        return replace(unnamed, notes=(f"only ReaL is measured, which needs no class names: {error}",))


def measure_real(
    answers: Answers, numbers: Int[np.ndarray, "image"], lists: RealLists, *, resamples: int = 1000, seed: int = 0
) -> Real:
    """Measure answers by ReaL's labels."""
    counted = answers.answered & np.array([bool(lists[number - 1]) for number in numbers])
    right = np.array(
        [int(answer) in lists[number - 1] for number, answer in zip(numbers, answers.predicted, strict=True)]
    )
    if not counted.any():
        raise InputError("none of the images has a label in ReaL, so there is nothing to score.")
    return Real(
        counted=counted,
        right=counted & right,
        accuracy=share(right[counted], resamples=resamples, seed=seed),
    )
