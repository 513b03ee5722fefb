"""Small models and data for the tests of features, and random features."""

import numpy as np
import torch

from tests.data.arrays import noise
from tests.tiny import perturbed, vit_config
from vitrail.base.ranks import Ranks
from vitrail.data.dataset import Dataset
from vitrail.data.preprocessing import Preprocessing
from vitrail.evaluation.extractor import Extractor
from vitrail.model.vit import ViT
from vitrail.runtime.engine import TorchEngine

PIXELS = Preprocessing(image_size=(12, 16), mean=(0.4, 0.5, 0.6), std=(0.2, 0.3, 0.4))


def model_of(**changes) -> ViT:
    return perturbed(vit_config(**changes))


def images(count: int = 11, seed: int = 0) -> Dataset:
    return noise(count, size=(20, 18), classes=3, seed=seed)


def extractor(model, **changes) -> Extractor:
    pixels = changes.pop("preprocessing", PIXELS)
    return Extractor(**{"engine": TorchEngine(model, pixels), "preprocessing": pixels, "ranks": Ranks()} | changes)


def random_features(count: int, width: int, classes: int, *, seed: int = 0, apart: float = 1.0):
    """Features in clouds around the middle of their class, far from a mean of 0 and a deviation of 1."""
    random = np.random.default_rng(seed)
    targets = np.concatenate([np.arange(classes), random.integers(0, classes, max(count - classes, 0))])[:count]
    middles = random.normal(size=(classes, width))
    values = apart * middles[targets] + random.normal(size=(count, width))
    values = values * random.uniform(0.1, 10, width) + random.normal(size=width) * 5
    return torch.from_numpy(values.astype(np.float32)), targets


def whitened(values: torch.Tensor, by: torch.Tensor) -> np.ndarray:
    """(x - mean) / (std + 1e-5), by NumPy."""
    examples = by.double().numpy()
    return (values.double().numpy() - examples.mean(0)) / (examples.std(0) + 1e-5)
