"""The features of every image: the input of the last linear layer, in the order of the data set (Sec. 4.1)."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from vitrail.base.ranks import Ranks
from vitrail.data.batch import Batch
from vitrail.data.preprocessing import Preprocessing
from vitrail.runtime.engine import Engine

Matrix = Float[Tensor, "image representation"]
Pixels = Literal["paper", "model"]

RESIZED, CROPPED = 256, 224
"""The short side before the crop, and the crop, in pixels, of a model for 224 pixels; others keep the proportion."""
SMALL_SIDE = 64
"""Up to this side, in pixels, a model sees whole images: they have no border to spare."""
SHARED_ROWS = 2**14
"""Images whose representations are sent to other ranks at a time."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Features:
    """The representation of every image of a data set, the same on every rank."""

    values: Matrix
    """In float32; zeros where an image could not be read."""
    read: Bool[np.ndarray, "image"]
    """False where an image could not be read."""

    @property
    def finite(self) -> Bool[np.ndarray, "image"]:
        """The images whose numbers are all finite."""
        return torch.cat([rows.isfinite().all(1) for rows in self.values.split(SHARED_ROWS)]).numpy()


def feature_preprocessing(own: Preprocessing, pixels: Pixels = "paper") -> Preprocessing:
    """Return how images become input: the paper's resize and centre crop, or just the model's `own` preprocessing.

    Mean and deviation are the model's own in both cases. Up to 64 pixels the whole image is resized, with nothing cut
    off.
    """
    if pixels == "model":
        return own
    side = min(own.image_size)
    if side <= SMALL_SIDE:
        return replace(own, geometry="square", crop_fraction=1.0, interpolation="bilinear", antialias=True)
    fraction = side / round(side * RESIZED / CROPPED)
    return replace(own, geometry="crop", crop_fraction=fraction, interpolation="bilinear", antialias=True)


def extract(engine: Engine, batches: Iterable[Batch], images: int, ranks: Ranks) -> Features:
    """Compute the representations of this rank's batches, and share them with all ranks.

    Every rank writes its own images into a table of all images; the sum over ranks is the whole table, exactly.
    """
    values = torch.zeros(images, engine.feature_width)
    read = torch.zeros(images, dtype=torch.uint8)
    for batch in batches:
        if not len(batch.indices):  # every image of it was broken
            continue
        values[batch.indices] = engine.features(batch.images).float().cpu()
        read[batch.indices] = 1
    return Features(values=shared(values, ranks), read=shared(read, ranks).bool().numpy())


def shared(table: Tensor, ranks: Ranks) -> Tensor:
    """Add a table over all ranks, in place, some rows at a time."""
    if ranks.world > 1:
        for rows in table.split(SHARED_ROWS):
            rows.copy_(ranks.sum(rows.to(ranks.device)))
    return table
