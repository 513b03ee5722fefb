"""Answers from scores that a test chooses: the pixels of an image encode its number."""

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from vitrail.base.ranks import Ranks
from vitrail.data.batch import Batch, class_targets
from vitrail.data.preprocessing import Preprocessing
from vitrail.data.transforms import normalise
from vitrail.evaluation.classify import Answers, answer

AS_THEY_ARE = Preprocessing(image_size=(1, 1), mean=(0.0, 0.0, 0.0), std=(1 / 255, 1 / 255, 1 / 255))
"""Pixels of 0 to 255 stay what they are."""


class FixedEngine:
    """An engine that looks up the scores of an image by the number in its three channels."""

    preprocessing = AS_THEY_ARE
    device, dtype, concurrent = torch.device("cpu"), torch.float32, True

    def __init__(self, logits: np.ndarray) -> None:
        self.table = torch.as_tensor(logits, dtype=torch.float32)
        self.num_outputs = self.feature_width = logits.shape[1]
        self.digest = "fixed"

    def logits(self, pixels: Tensor) -> Tensor:
        digits = normalise(pixels, self.preprocessing)[:, :, 0, 0].round().long()
        return self.table[digits[:, 0] + 256 * digits[:, 1] + 65536 * digits[:, 2]]

    features = logits


def pictures_of(count: int) -> np.ndarray:
    """Images of one pixel whose channels encode their number."""
    numbers = np.arange(count)
    return np.stack([numbers % 256, numbers // 256 % 256, numbers // 65536], 1).astype(np.uint8)[:, None, None, :]


def batches_of(targets: np.ndarray, batch: int) -> Iterator[Batch]:
    pictures = torch.from_numpy(pictures_of(len(targets))).permute(0, 3, 1, 2)
    for start in range(0, len(targets), batch):
        indices = torch.arange(start, min(start + batch, len(targets)))
        classes = torch.from_numpy(targets.astype(np.int64))[indices]
        yield Batch(views=(pictures[indices],), targets=class_targets(classes), indices=indices, positions=indices)


def answers_of(logits: np.ndarray, targets: np.ndarray, *, batch: int = 7, top: int = 0) -> Answers:
    return answer(FixedEngine(logits).logits, batches_of(targets, batch), targets, Ranks(), top=top)


def noisy(images: int, classes: int, *, seed: int = 0, sure: float = 2.0) -> tuple[np.ndarray, np.ndarray]:
    """Scores that lean towards the truth, and the truth, unevenly spread over classes."""
    generator = np.random.default_rng(seed)
    targets = generator.choice(classes, images, p=np.arange(1, classes + 1) / np.arange(1, classes + 1).sum())
    logits = generator.normal(size=(images, classes)).astype(np.float32)
    logits[np.arange(images), targets] += sure
    return logits, targets


def softmax(logits: np.ndarray) -> np.ndarray:
    """Probabilities in float64."""
    raised = np.exp(logits.astype(np.float64) - logits.max(1, keepdims=True))
    return raised / raised.sum(1, keepdims=True)
