"""Whether an engine gives the answers of another: equal first classes, and the largest difference of a logit."""

import os

import numpy as np
import torch

from vitrail.data import catalog
from vitrail.data.pixels.decode import to_channels
from vitrail.data.preprocessing import Preprocessing
from vitrail.data.transforms import preprocess

IMAGES = 64
"""Images on which engines are compared."""
CLOSE = 1e-4
"""How far logits in float32 may be from torch's, as a share of their range."""


def compare(ours: np.ndarray, theirs: np.ndarray) -> tuple[float, float]:
    """Return the share of rows with the same largest number, and the largest difference as a share of the range."""
    span = max(float(theirs.max() - theirs.min()), float(np.finfo(np.float32).tiny))
    agreement = float((ours.argmax(1) == theirs.argmax(1)).mean())
    return agreement, float(np.abs(ours - theirs).max()) / span


def sample_pixels(how: Preprocessing, data: str | os.PathLike[str] = "sample", images: int = IMAGES) -> torch.Tensor:
    """Return images from all over the test split of a data set at a model's size, or of another split it has."""
    splits = catalog.open_splits(os.fspath(data))
    dataset = next((splits[name] for name in ("test", "val") if name in splits), None) or next(iter(splits.values()))
    count = min(images, len(dataset))
    numbers = range(0, count * (len(dataset) // count), len(dataset) // count)
    return torch.stack([preprocess(to_channels(dataset.image(index), how.channels), how) for index in numbers])
