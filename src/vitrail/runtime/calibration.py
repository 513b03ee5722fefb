"""Images that show an int8 graph the range of every layer, and others by which it is compared."""

import os

import numpy as np
import torch

from vitrail.base.errors import ImageError, InputError
from vitrail.data import catalog
from vitrail.data.dataset import Dataset
from vitrail.data.pixels.decode import to_channels
from vitrail.data.preprocessing import Preprocessing
from vitrail.data.transforms import normalise, preprocess
from vitrail.runtime.card import Entry
from vitrail.runtime.graph_engine import on_canvas
from vitrail.runtime.quantise import Calibration

SHOWN, COMPARED, FEWEST = 128, 256, 32
"""Images of each kind, and how many there must be in all."""


def read_calibration(data: str | os.PathLike[str] | Dataset, how: Preprocessing, entry: Entry) -> Calibration:
    """Read images from all over a data set; those that cannot be read are left out."""
    dataset = data if isinstance(data, Dataset) else _open(data)
    pixels: list[torch.Tensor] = []
    reasons: list[str] = []
    count = min(len(dataset), SHOWN + COMPARED)
    for index in np.random.default_rng(0).permutation(len(dataset))[:count].tolist():
        try:
            pixels.append(preprocess(to_channels(dataset.image(index), how.channels), how))
        except ImageError as error:
            reasons.append(str(error))
    if len(pixels) < FEWEST:
        why = f" ({reasons[0]})" if reasons else ""
        raise InputError(
            f"{dataset.where} has {len(pixels)} images that fit the model{why}, but calibration needs at least "
            f"{FEWEST}."
        )
    batch = torch.stack(pixels)
    if entry == "input":
        images = normalise(batch, how).numpy()
    else:
        images = batch.permute(0, 2, 3, 1).contiguous().numpy()
        images = on_canvas(images, how) if entry == "image" else images
    shown = max(min(SHOWN, len(images) // 3), 1)
    return Calibration(shown=images[:shown], compared=images[shown:])


def _open(data: str | os.PathLike[str]) -> Dataset:
    """Open what a model may have learned from: the training split, or everything."""
    splits = catalog.open_splits(os.fspath(data))
    return splits.get("train") or next(iter(splits.values()))
