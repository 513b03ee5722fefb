"""Whether an engine gives the answers of another: equal first classes, and the largest difference of a logit."""

import numpy as np
import torch

from vitrail.data import catalog
from vitrail.data.pixels.decode import to_channels
from vitrail.data.preprocessing import Preprocessing
from vitrail.data.transforms import preprocess

IMAGES = 64
"""Images of the embedded sample on which engines are compared."""
CLOSE = 1e-4
"""How far logits in float32 may be from torch's, as a share of their range."""


def compare(ours: np.ndarray, theirs: np.ndarray) -> tuple[float, float]:
    """Return the share of rows with the same largest number, and the largest difference as a share of the range."""
    span = max(float(theirs.max() - theirs.min()), float(np.finfo(np.float32).tiny))
    agreement = float((ours.argmax(1) == theirs.argmax(1)).mean())
    return agreement, float(np.abs(ours - theirs).max()) / span


def sample_pixels(how: Preprocessing, images: int = IMAGES) -> torch.Tensor:
    """Return images of the embedded sample at a model's size, some of every class."""
    dataset = catalog.open("sample", split="test")
    step = max(len(dataset) // images, 1)
    pixels = [
        preprocess(to_channels(dataset.image(index), how.channels), how) for index in range(0, images * step, step)
    ]
    return torch.stack(pixels)
