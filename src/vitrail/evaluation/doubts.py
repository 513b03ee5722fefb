"""Labels that features contradict.

A label is judged by least squares (`ridge.py`) that were fitted without its image: each fifth of the images is answered
for by the others. The *doubt* is how far the score of another class is above that of its own, from -2 to 2 or so.
Features of a small model cannot tell everything apart, so a doubt is a reason to look, not a verdict; `agreement` is
the share of labels that the answers confirm.
"""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int

from vitrail.base.seeds import key, keys
from vitrail.evaluation.features import Matrix
from vitrail.evaluation.ridge import decompose

Numbers = Int[np.ndarray, "image"]
Values = Float[np.ndarray, "image"]

FOLDS = 5
DOUBT = 0.8
"""Scores by which another class must be ahead; docs/data.md has how often that is right."""
L2_SHARE = 0.5
"""Strength of the regularisation for each image, so that scores are as large with few images as with many."""
FEWEST = 2 * FOLDS
"""Images of the smallest class below which labels are not judged."""


@dataclass(frozen=True, kw_only=True, eq=False)
class LabelDoubts:
    """What the other images say about the label of each."""

    other: Numbers
    """The class with the highest score among those that are not its own."""
    doubt: Values
    """How far that score is above that of its own class."""

    @property
    def agreement(self) -> float:
        """The share of labels that are confirmed."""
        return float((self.doubt <= 0).mean())

    @property
    def doubtful(self) -> Numbers:
        """The images whose labels deserve a look, the most doubtful first."""
        order = np.argsort(-self.doubt, kind="stable")
        return order[self.doubt[order] >= DOUBT]


def folds(targets: Numbers, seed: int) -> Numbers:
    """Deal the images of each class into folds by chance, as evenly as they go."""
    order = np.lexsort((keys(key(seed, "folds"), np.arange(len(targets))), targets))
    place = np.arange(len(targets)) - np.searchsorted(targets[order], targets[order])
    dealt = np.empty(len(targets), dtype=np.int64)
    dealt[order] = place % FOLDS
    return dealt


def label_doubts(features: Matrix, targets: Numbers, num_classes: int, *, seed: int = 0) -> LabelDoubts | None:
    """Judge every label by the other images; None where a class that occurs has too few of them, or there is one."""
    counts = np.bincount(targets, minlength=num_classes)
    if (counts > 0).sum() < 2 or counts[counts > 0].min() < FEWEST:
        return None
    scores, fold = np.empty((len(targets), num_classes)), folds(targets, seed)
    for number in range(FOLDS):
        inside = np.flatnonzero(fold == number)
        rest = np.flatnonzero(fold != number)
        fitted = decompose(features[torch.from_numpy(rest)], targets[rest], num_classes)
        for rows, some in fitted.scores(features[torch.from_numpy(inside)], L2_SHARE * len(rest)):
            scores[inside[rows]] = some.numpy()
    images = np.arange(len(targets))
    own = scores[images, targets]
    scores[images, targets] = -np.inf
    other = scores.argmax(1)
    return LabelDoubts(other=other, doubt=scores[images, other] - own)
