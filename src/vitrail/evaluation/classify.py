"""The answers of a classifier for a data set: every image exactly once, on any number of ranks."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from vitrail.base.ranks import Ranks
from vitrail.base.scores import Scores, tally
from vitrail.base.shapes import Logits, PixelBatch
from vitrail.data.loader import Batch

COLUMNS = 6
"""Numbers stored for each image, beside its best classes."""


@dataclass(frozen=True, kw_only=True)
class Answers:
    """A model's answers, in the order of the data set."""

    targets: Int[np.ndarray, "image"]
    """The true class of each image; -1 without one."""
    answered: Bool[np.ndarray, "image"]
    """False where an image could not be read."""
    predicted: Int[np.ndarray, "image"]
    """The class with the highest score; of equal scores, the first."""
    confidence: Float[np.ndarray, "image"]
    """The softmax probability of that class."""
    above: Int[np.ndarray, "image"]
    """How many classes rank before the true one: they score higher, or the same and have a lower number; all of them
    where there is no true one."""
    losses: Float[np.ndarray, "image"]
    """Softmax cross-entropy of each image; NaN where there is no true class."""
    squares: Float[np.ndarray, "image"]
    """Squared distance of the probabilities from the truth (Brier); NaN where there is no true class."""
    best: Int[np.ndarray, "image top"]
    """The classes with the highest scores, the highest first; `top` of them."""
    chances: Float[np.ndarray, "image top"]
    """Their softmax probabilities."""

    @property
    def counted(self) -> Bool[np.ndarray, "image"]:
        """The images with an answer and a true class: those that are scored."""
        return self.answered & (self.targets >= 0)

    @property
    def accuracy(self) -> float:
        """The share of right answers."""
        return float((self.predicted == self.targets)[self.counted].mean())

    @property
    def top5(self) -> float:
        """The share of images whose class is among the first five by score; of equal scores, the first classes."""
        return float((self.above < 5)[self.counted].mean())

    @property
    def loss(self) -> float:
        """The mean cross-entropy."""
        return float(self.losses[self.counted].mean())

    def confusion(self, num_classes: int) -> Int[np.ndarray, "true predicted"]:
        """Count the images of each class by answer."""
        cells = self.targets[self.counted].astype(np.int64) * num_classes + self.predicted[self.counted]
        return np.bincount(cells, minlength=num_classes**2).reshape(num_classes, num_classes)

    def scores(self, num_classes: int) -> Scores:
        """Score each class without the confusion matrix, which has a million cells for a thousand classes."""
        truth, predicted = self.targets[self.counted], self.predicted[self.counted]
        return tally(
            hits=np.bincount(truth[truth == predicted], minlength=num_classes),
            support=np.bincount(truth, minlength=num_classes),
            answers=np.bincount(predicted, minlength=num_classes),
        )

    def cells(self) -> list[tuple[int, int, int]]:
        """Return the cells of the confusion matrix that have images: truth, answer, images, in order."""
        pairs = np.stack([self.targets[self.counted], self.predicted[self.counted]])
        cells, images = np.unique(pairs, axis=1, return_counts=True)
        return [(int(truth), int(answer), int(count)) for (truth, answer), count in zip(cells.T, images, strict=True)]

    def mistakes(self, most: int) -> Int[np.ndarray, "mistake"]:
        """Return the images with the most confident wrong answers, the most confident first."""
        wrong = np.flatnonzero(self.counted & (self.predicted != self.targets))
        return wrong[np.argsort(-self.confidence[wrong], kind="stable")][:most]


@torch.inference_mode()  # making batches may run the network too, as a collective of all ranks
def answer(
    logits_of: Callable[[PixelBatch], Logits],
    batches: Iterable[Batch],
    targets: Int[np.ndarray, "image"],
    ranks: Ranks,
    *,
    top: int = 0,
) -> Answers:
    """Compute the logits of this rank's batches, and share the answers with all ranks.

    `logits_of` is an engine's `logits`, or `Scored`. Every rank writes its own images into a table of all images; the
    sum over ranks is the whole table. `top` is how many of the best classes to store, at most the number of classes.
    """
    table = torch.zeros(COLUMNS + 2 * top, len(targets), dtype=torch.float64)
    for batch in batches:
        if not len(batch.indices):
            continue
        logits = logits_of(batch.images).float()
        classes = batch.classes.to(logits.device)
        unknown, truth = classes < 0, classes.clamp(min=0)[:, None]
        probabilities, predicted = logits.softmax(1), logits.argmax(1)
        confidence = probabilities.gather(1, predicted[:, None])[:, 0]
        off = probabilities.square().sum(1) + 1 - 2 * probabilities.gather(1, truth)[:, 0]
        columns = [
            torch.ones_like(confidence),
            predicted,
            confidence,
            _above(logits, truth).masked_fill(unknown, logits.shape[1]),
            F.cross_entropy(logits, truth[:, 0], reduction="none").masked_fill(unknown, torch.nan),
            off.masked_fill(unknown, torch.nan),
        ]
        if top:
            best = logits.sort(dim=1, descending=True, stable=True).indices[:, :top]
            columns += [*best.T, *probabilities.gather(1, best).T]
        table[:, batch.indices] = torch.stack([column.double() for column in columns]).cpu()
    rows = ranks.sum(table.to(ranks.device)).cpu().numpy()
    answered, predicted, confidence, above, losses, squares = rows[:COLUMNS]
    return Answers(
        targets=targets,
        answered=answered > 0,
        predicted=predicted.astype(np.int64),
        confidence=confidence,
        above=above.astype(np.int64),
        losses=losses,
        squares=squares,
        best=rows[COLUMNS : COLUMNS + top].T.astype(np.int64),
        chances=rows[COLUMNS + top :].T,
    )


def _above(logits: Logits, truth: Int[Tensor, "batch 1"]) -> Int[Tensor, "batch"]:
    """Count the classes before the true one in a stable order of the scores, the highest first."""
    own, classes = logits.gather(1, truth), torch.arange(logits.shape[1], device=logits.device)
    return ((logits > own) | ((logits == own) & (classes < truth))).sum(1)
