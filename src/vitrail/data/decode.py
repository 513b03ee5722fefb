"""Bytes to pixels: the one decoder of training, evaluation, prediction and serving."""

import numpy as np
import torch

from vitrail.base.shapes import Pixels


def decode(encoded: bytes) -> Pixels:
    """Turn an image file into red, green and blue."""
    raise NotImplementedError


def from_array(array: np.ndarray) -> Pixels:
    """Turn height x width (x channel) into pixels."""
    array = array[:, :, None] if array.ndim == 2 else array
    return torch.from_numpy(np.ascontiguousarray(array)).permute(2, 0, 1)
