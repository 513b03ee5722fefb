"""A model with answers of its own, and data for it."""

from pathlib import Path

import numpy as np

import vitrail
from tests.tiny import perturbed, vit_config
from tests.training.making import CLASSES, made_dataset

PIXELS = vitrail.Preprocessing(image_size=(8, 8))


def small_model(**changes: object) -> vitrail.ViT:
    fields = {"image_size": (8, 8), "patch_size": (4, 4), "num_classes": len(CLASSES)}
    return perturbed(vit_config(**fields | changes), by=0.5)


def model_file(folder: Path) -> Path:
    return vitrail.save(small_model(), folder / "model.safetensors", labels=CLASSES, preprocessing=PIXELS)


def data_file(folder: Path, images: int = 30) -> Path:
    """Arrays with a training and a test split."""
    made, path = made_dataset(images), folder / "made.npz"
    pixels, third = made.pictures.images, images // 3
    np.savez(
        path,
        x_train=pixels[third:],
        y_train=made.targets[third:],
        x_test=pixels[:third],
        y_test=made.targets[:third],
        class_names=np.array(CLASSES),
    )
    return path
