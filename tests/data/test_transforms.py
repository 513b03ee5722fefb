"""Preprocessing beside recorded outputs of the libraries it stands for, and on images that nobody expects."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.golden.preprocessing_images import GREY, SIZES, photo
from vitrail.base.errors import ImageError
from vitrail.data.pixels.decode import from_array
from vitrail.data.pixels.resize import resize
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


IMAGES = {f"{height}x{width}": photo(height, width) for height, width in SIZES}
IMAGES[f"{GREY[0]}x{GREY[1]} grey"] = np.repeat(photo(*GREY, 1), 3, axis=2)


@pytest.mark.parametrize("size", IMAGES)
@pytest.mark.parametrize("name", RECIPES)
def test_the_input_of_a_model_is_that_of_the_library(name, size) -> None:
    how, most = RECIPES[name]
    made = normalise(preprocess(from_array(IMAGES[size]), how)[None], how)[0].numpy()
    assert made.shape == (3, *how.image_size)
    step = 11 if how.image_size == (384, 384) else 7
    difference = np.abs(made[:, ::step, ::step] - RECORDED[f"{name}:{size}"])
    levels = difference * 255 * np.array(how.std, np.float32)[:, None, None]
    assert levels.mean() <= (0.32 if "google" in name else 0.26)
    assert levels.max() <= most + 0.01


@pytest.mark.parametrize("size", [(1, 1), (1, 65_535), (65_535, 1), (3, 2), (4000, 7)])
@pytest.mark.parametrize("name", PRESETS)
def test_tiny_and_long_images_have_an_input_too(name, size) -> None:
    made = preprocess(from_array(photo(*size)), preset(name, image_size=(32, 32)))
    assert made.shape == (3, 32, 32)
    assert made.permute(1, 2, 0).is_contiguous()


@pytest.mark.parametrize("antialias", [True, False])
def test_of_a_long_image_the_centre_alone_is_computed(antialias) -> None:
    """The same pixels, whether the whole was resized (up to 16 times what is kept) or the window alone."""
    how = Preprocessing(
        geometry="crop", crop_fraction=0.8, image_size=(32, 32), interpolation="bicubic", antialias=antialias
    )
    image = from_array(photo(20, 500))
    resized = how.resized(20, 500)
    assert resized == (40, 1000)
    whole = resize(image, resized, "bicubic", antialias)[:, 4:36, 484:516]
    assert (preprocess(image, how).int() - whole.int()).abs().max() <= 2


@given(
    st.tuples(st.integers(1, 3000), st.integers(1, 3000)),
    st.tuples(st.integers(1, 600), st.integers(1, 600)),
    st.floats(0.1, 1),
)
def test_the_resized_image_covers_the_crop_and_keeps_its_proportions(image, crop, fraction) -> None:
    how = Preprocessing(geometry="crop", image_size=crop, crop_fraction=fraction)
    height, width = how.resized(*image)
    assert height >= crop[0]
    assert width >= crop[1]
    exact = max(side / given for side, given in zip([int(side / fraction + 1e-6) for side in crop], image, strict=True))
    assert abs(height - image[0] * exact) <= 1
    assert abs(width - image[1] * exact) <= 1


def test_other_geometries_have_the_sizes_of_their_libraries() -> None:
    assert preset("timm").resized(300, 400) == (248, 330)  # int(248 * 400 / 300)
    assert preset("torchvision").resized(400, 300) == (341, 256)
    assert preset("timm", image_size=(224, 288)).resized(300, 400) == (248, 331)


@pytest.mark.parametrize("channels", [1, 3, 13])
def test_normalised_pixels_have_the_mean_taken_off_and_are_divided_by_the_deviation(channels) -> None:
    how = preset("torchvision", channels=channels)
    assert how.channels == channels
    batch = torch.stack([from_array(photo(9, 11, channels)), from_array(photo(9, 11, channels)).flip(1)])
    made = normalise(batch, how)
    mean, std = (np.array(values)[:, None, None] for values in (how.mean, how.std))
    wanted = (batch.numpy() / 255 - mean) / std
    assert made.dtype == torch.float32
    np.testing.assert_allclose(made.numpy(), wanted, atol=1e-6, rtol=1e-6)
    assert channels != 3 or (how.mean == IMAGENET_MEAN and how.std == IMAGENET_STD)


@pytest.mark.parametrize("images", [1, 3])
@pytest.mark.parametrize("side", [16, 320])
def test_normalised_pixels_are_the_same_however_they_lie_in_memory(images, side) -> None:
    batch = torch.randint(0, 256, (images, 3, side, side + 1), dtype=torch.uint8, generator=torch.Generator())
    how = preset("torchvision")
    beside = batch.contiguous(memory_format=torch.channels_last)
    assert torch.equal(normalise(beside, how), normalise(batch, how))
    assert torch.equal(normalise(beside.flip(2), how), normalise(batch, how).flip(2))


def test_channels_that_do_not_fit_are_told() -> None:
    with pytest.raises(ImageError, match="have 1 channels, but the preprocessing has a mean and std for 3"):
        normalise(torch.zeros(2, 1, 4, 4, dtype=torch.uint8), preset("google"))
