"""`preprocessor_config.json` as transformers writes it: our pixels beside those of its own image processors."""

import json

import numpy as np
import pytest
import torch
from PIL import Image

import vitrail
from tests.data.pictures import photo

transformers = pytest.importorskip("transformers")

STATISTICS = {"image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225]}
SMALL = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16, "patch_size": 4}
# Processor and settings, as published models have them, for images of 16 pixels.
PROCESSORS = {
    "ViT": ("ViTImageProcessorPil", {"size": {"height": 16, "width": 16}, "resample": 2}),
    "ViT, bicubic": ("ViTImageProcessorPil", {"size": {"height": 16, "width": 16}, "resample": 3}),
    "ViT, no statistics": (
        "ViTImageProcessorPil",
        {"size": {"height": 16, "width": 16}, "resample": 2, "do_normalize": False},
    ),
    "ViT, no rescaling": (
        "ViTImageProcessorPil",
        {"size": {"height": 16, "width": 16}, "do_rescale": False, "image_mean": [127.0] * 3, "image_std": [64.0] * 3},
    ),
    "ViT, another range": (
        "ViTImageProcessorPil",
        {
            "size": {"height": 16, "width": 16},
            "rescale_factor": 1 / 127.5,
            "image_mean": [1.0] * 3,
            "image_std": [1.0] * 3,
        },
    ),
    "DeiT": (
        "DeiTImageProcessorPil",
        {"size": {"height": 20, "width": 20}, "crop_size": {"height": 16, "width": 16}, **STATISTICS},
    ),
    "DeiT, no crop": (
        "DeiTImageProcessorPil",
        {"size": {"height": 16, "width": 16}, "do_center_crop": False, **STATISTICS},
    ),
    "DINOv2": (
        "BitImageProcessorPil",
        {"size": {"shortest_edge": 20}, "crop_size": {"height": 16, "width": 16}, **STATISTICS},
    ),
    "CLIP": ("CLIPImageProcessorPil", {"size": {"shortest_edge": 16}, "crop_size": {"height": 16, "width": 16}}),
    "SigLIP": ("SiglipImageProcessorPil", {"size": {"height": 16, "width": 16}}),
}


def folder_with(name: str, folder):
    """A tiny model, with the settings of a processor beside it as transformers writes them."""
    kind, settings = PROCESSORS[name]
    torch.manual_seed(0)
    transformers.ViTModel(transformers.ViTConfig(**SMALL, image_size=16)).save_pretrained(folder)
    processor = getattr(transformers, kind)(**settings)
    processor.save_pretrained(folder)
    assert (folder / "preprocessor_config.json").exists()
    return processor


@pytest.mark.parametrize("name", PROCESSORS)
def test_our_pixels_are_those_of_the_processor(name, tmp_path) -> None:
    processor = folder_with(name, tmp_path)
    preprocessing = vitrail.load(tmp_path).info.preprocessing
    for size in ((30, 24), (17, 41)):
        image = Image.fromarray(np.asarray(photo(1, *size)))
        wanted = processor(image, return_tensors="pt")["pixel_values"][0]
        ours = preprocessing(image)
        levels = 255 * min(preprocessing.std) * (ours.reshape(wanted.shape) - wanted).abs()
        assert levels.max() < 2.05  # Pillow rounds to whole levels after each of its two passes
        assert levels.mean() < 0.5


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"do_resize": False}, "its image processor gives images of their own sizes"),
        (
            {"image_processor_type": "OddImageProcessor"},
            "its image processor 'OddImageProcessor' is not known here",
        ),
    ],
)
def test_what_cannot_be_followed_is_asked_for(changes, words, tmp_path) -> None:
    folder_with("DINOv2", tmp_path)
    path = tmp_path / "preprocessor_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    info = vitrail.load(tmp_path).info
    assert info.preprocessing is None
    assert words in info.doubt
