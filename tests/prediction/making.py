"""A small model in a file, photos to show it, and its answers worked out by hand."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import torch
from PIL import Image

import vitrail
from tests.data.pictures import photo
from tests.tiny import perturbed, vit_config
from vitrail.base.ranks import Ranks
from vitrail.prediction.classifier import Classifier
from vitrail.prediction.folder import list_images
from vitrail.prediction.prediction import PredictionFile
from vitrail.prediction.work import Work

LABELS = ("ant", "bee", "wasp", "fly", "moth", "beetle", "bug")
PIXELS = vitrail.Preprocessing(
    image_size=(12, 16), antialias=True, mean=(0.4, 0.5, 0.6), std=(0.2, 0.25, 0.3), interpolation="bicubic"
)


def saved_model(folder: Path, *, labels: tuple[str, ...] | None = LABELS, **changes) -> Path:
    """A model whose answers depend on the image."""
    path = folder / "model.safetensors"
    config = vit_config(**changes)
    pixels = PIXELS if config.channels == 3 else None
    return vitrail.save(perturbed(config, by=0.3), path, labels=labels, preprocessing=pixels)


def saved_photos(folder: Path, names: Iterable[str]) -> Path:
    """Photos under some names."""
    for number, name in enumerate(names):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        photo(number, 40 + number % 7, 30).save(path)
    return folder


def by_hand(model: vitrail.ViT, array: np.ndarray) -> np.ndarray:
    """Softmax probabilities of an image that has the model's size already: everything after the resize in NumPy."""
    images = (array.astype(np.float64) / 255 - np.array(PIXELS.mean)) / np.array(PIXELS.std)
    with torch.no_grad():
        logits = model(torch.from_numpy(images.transpose(2, 0, 1)[None]).float())[0].double().numpy()
    powers = np.exp(logits - logits.max())
    return powers / powers.sum()


def resized(image: Image.Image) -> np.ndarray:
    """An image as Pillow brings it to the model's size."""
    return np.asarray(image.convert("RGB").resize((16, 12), Image.Resampling.BICUBIC))


def work(model: Path, words: list[str], out: Path, *, top: int = 3, **changes) -> PredictionFile:
    """Predict in this process, as the command does."""
    classifier = Classifier.load(model, device="cpu", **{"batch": 4, "workers": 2} | changes)
    outcome = Work(classifier=classifier, out=out, top=top, ranks=Ranks()).run(lambda: list_images(words, bytes))
    assert outcome is not None
    return outcome
