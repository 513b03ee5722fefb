"""Preprocessing beside recorded outputs of the libraries it stands for, and on images that nobody expects."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.golden.preprocessing_images import GREY, SIZES, photo
from vitrail.base.errors import ImageError
from vitrail.data.decode import from_array
from vitrail.data.preprocessing import IMAGENET_MEAN, IMAGENET_STD, PRESETS, Preprocessing, preset
from vitrail.data.transforms import normalise, preprocess

RECORDED = {
    name: value
    for path in sorted((Path(__file__).parents[1] / "golden" / "preprocessing").glob("*.npz"))
    for name, value in np.load(path).items()
    if name != "recorded_with"
}
SWAG = replace(preset("torchvision", image_size=(384, 384)), crop_fraction=1.0, interpolation="bicubic")
# What each recording stands for, and the largest difference of a pixel, in levels of 255.
RECIPES: dict[str, tuple[Preprocessing, int]] = {
    "google 224": (preset("google"), 1),
    "google 384": (preset("google", image_size=(384, 384)), 1),
    "timm 224": (preset("timm"), 1),
    "timm 384": (preset("timm", image_size=(384, 384)), 1),
    # timm hands its interpolation on for squares only; the geometry is what this compares
    "timm 224x288": (replace(preset("timm", image_size=(224, 288)), interpolation="bilinear"), 1),
    "torchvision 224": (preset("torchvision"), 1),
    "torchvision 384": (SWAG, 1),
    "huggingface 224": (preset("huggingface"), 1),
    "huggingface 224 bicubic": (replace(preset("huggingface"), interpolation="bicubic"), 1),
    "huggingface pil 224": (preset("huggingface"), 1),
    "huggingface pil 224 bicubic": (replace(preset("huggingface"), interpolation="bicubic"), 1),
    "huggingface pil 224 lanczos": (replace(preset("huggingface"), interpolation="lanczos"), 0),
    "huggingface pil 224 nearest": (replace(preset("huggingface"), interpolation="nearest"), 0),
}


def ours(size: str, how: Preprocessing) -> np.ndarray:
    height, width = map(int, re.findall(r"\d+", size))
    image = np.repeat(photo(*GREY, 1), 3, axis=2) if "grey" in size else photo(height, width)
    return normalise(preprocess(from_array(image), how)[None], how)[0].numpy()


@pytest.mark.parametrize("recorded", RECORDED)
def test_the_input_of_a_model_is_that_of_the_library(recorded) -> None:
    name, size = recorded.split(":")
    how, most = RECIPES[name]
    step = 11 if how.image_size == (384, 384) else 7
    made = ours(size, how)
    assert made.shape == (3, *how.image_size)
    difference = np.abs(made[:, ::step, ::step] - RECORDED[recorded])
    levels = difference * 255 * np.array(how.std, np.float32)[:, None, None]
    print(f"{recorded}: mean {levels.mean():.3f}, at most {levels.max():.2f}")
    assert levels.mean() <= 1
    assert levels.max() <= most + 0.01
