"""Images for int8, as each kind of graph takes them."""

import numpy as np
import pytest
import torch

import vitrail
from vitrail import InputError, Preprocessing
from vitrail.data.transforms import normalise
from vitrail.runtime.calibration import read_calibration

HOW = Preprocessing(image_size=(8, 12), mean=(0.4,) * 3, std=(0.3,) * 3, geometry="crop", crop_fraction=0.8)
FORTY = vitrail.data.open("sample", split="test").take(np.arange(40))


def test_each_graph_gets_what_it_takes() -> None:
    images = {entry: read_calibration(FORTY, HOW, entry) for entry in ("pixels", "image", "input")}
    pixels = images["pixels"].compared
    assert (pixels.shape[1:], pixels.dtype) == ((8, 12, 3), np.uint8)  # at the model's size
    assert images["image"].compared.shape[1:] == (*HOW.canvas, 3)  # on a canvas that the graph crops
    planes = normalise(torch.from_numpy(pixels).permute(0, 3, 1, 2), HOW)
    np.testing.assert_array_equal(images["input"].compared, planes.numpy())  # normalised already


def test_some_images_show_ranges_and_others_are_compared() -> None:
    images = read_calibration(FORTY, HOW, "pixels")
    assert (len(images.shown), len(images.compared)) == (13, 27)
    with pytest.raises(InputError, match="31 images that fit the model, but calibration needs at least 32"):
        read_calibration(FORTY.take(np.arange(31)), HOW, "pixels")
