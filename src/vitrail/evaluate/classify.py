"""What a classifier answers for every image of a data set, each counted exactly once on any number of ranks."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import nn

from vitrail.base.ranks import Ranks
from vitrail.data.loader import Batch
from vitrail.data.preprocessing import Preprocessing
from vitrail.data.transforms import normalise


@dataclass(frozen=True, kw_only=True)
class Answers:
    """A model's answers, in the order of the data set."""

    targets: Int[np.ndarray, "image"]
    """The true class of each image."""
    answered: Bool[np.ndarray, "image"]
    """False where an image could not be read."""
    predicted: Int[np.ndarray, "image"]
    """The class with the highest score; of equal scores, the first."""
    confidence: Float[np.ndarray, "image"]
    """The softmax probability of that class."""
    above: Int[np.ndarray, "image"]
    """How many classes score higher than the true one."""
    losses: Float[np.ndarray, "image"]
    """Softmax cross-entropy of each image."""

    @property
    def accuracy(self) -> float:
        """The share of right answers."""
        return float((self.predicted == self.targets)[self.answered].mean())

    @property
    def top5(self) -> float:
        """The share of images whose class is among the five with the highest scores."""
        return float((self.above < 5)[self.answered].mean())

    @property
    def loss(self) -> float:
        """The mean cross-entropy."""
        return float(self.losses[self.answered].mean())

    def confusion(self, num_classes: int) -> Int[np.ndarray, "true predicted"]:
        """Count the images of each class by answer."""
        cells = self.targets[self.answered] * num_classes + self.predicted[self.answered]
        return np.bincount(cells, minlength=num_classes**2).reshape(num_classes, num_classes)

    def mistakes(self, most: int) -> Int[np.ndarray, "mistake"]:
        """Return the images whose wrong answer is the most confident, the worst first."""
        wrong = np.flatnonzero(self.answered & (self.predicted != self.targets))
        return wrong[np.argsort(-self.confidence[wrong], kind="stable")][:most]


@torch.inference_mode()
def answer(
    model: nn.Module,
    batches: Iterable[Batch],
    targets: Int[np.ndarray, "image"],
    preprocessing: Preprocessing,
    ranks: Ranks,
) -> Answers:
    """Ask the model about this rank's batches, and share the answers with all ranks.

    Every rank writes its own images into a table of all of them; the sum over ranks is the whole.
    """
    table = torch.zeros(5, len(targets), dtype=torch.float64)
    for batch in batches:
        truth = batch.targets.to(ranks.device)
        logits = model(normalise(batch.images.to(ranks.device), preprocessing)).float()
        best, predicted = logits.softmax(1).max(1)
        own = logits.gather(1, truth[:, None])
        columns = (
            torch.ones_like(best),
            predicted,
            best,
            (logits > own).sum(1),
            F.cross_entropy(logits, truth, reduction="none"),
        )
        table[:, batch.indices] = torch.stack([column.double() for column in columns]).cpu()
    answered, predicted, confidence, above, losses = ranks.sum(table.to(ranks.device)).cpu().numpy()
    return Answers(
        targets=targets,
        answered=answered > 0,
        predicted=predicted.astype(np.int64),
        confidence=confidence,
        above=above.astype(np.int64),
        losses=losses,
    )
