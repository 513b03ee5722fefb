"""The three targets and their losses beside NumPy, for any number of channels and any patch."""

import numpy as np
import pytest
import torch

from tests.reference import masked_patch as reference
from tests.reference.transformer import patchify
from vitrail.data.preprocessing import Preprocessing
from vitrail.data.transforms import normalise
from vitrail.selfsup.painting import paste
from vitrail.selfsup.targets import ColourTarget, colour_bins, colours_of, make_target


def _pixels(channels: int, size: int, images: int = 2) -> np.ndarray:
    return np.random.default_rng(channels * size).integers(0, 256, (images, channels, size, size), dtype=np.uint8)


@pytest.mark.parametrize("channels", [1, 2, 3, 4, 7])
@pytest.mark.parametrize(("patch", "cells"), [(4, 1), (5, 1), (2, 4), (6, 4), (8, 4), (14, 4)])
def test_classes_are_numpys(channels: int, patch: int, cells: int) -> None:
    pixels = _pixels(channels, 2 * patch)
    found = colour_bins(torch.from_numpy(pixels), (patch, patch), cells).numpy()
    patches = patchify(pixels, (patch, patch)).reshape(2, 4, channels, patch, patch)
    assert np.array_equal(found, [[reference.classes(patch, cells) for patch in image] for image in patches])


@pytest.mark.parametrize(("value", "code"), [(0, 0), (31, 0), (32, 1), (223, 6), (224, 7), (255, 7)])
def test_the_edges_of_bins_are_multiples_of_32(value: int, code: int) -> None:
    grey = torch.full((1, 3, 4, 4), value, dtype=torch.uint8)
    assert colour_bins(grey, (4, 4), 1).item() == 73 * code
    grey[0, :, 0, 0] = max(value - 1, 0)  # a mean just below an edge
    assert colour_bins(grey, (4, 4), 1).item() == 73 * (code - (value in (32, 224)))


@pytest.mark.parametrize(
    ("name", "channels", "outputs"),
    [
        ("mean-colour", 3, 512),
        ("downsized", 3, 16 * 512),
        ("patch", 3, 768),
        ("mean-colour", 1, 8),
        ("downsized", 4, 8320),
    ],
)
def test_outputs_are_as_many_as_the_paper_says(name: str, channels: int, outputs: int) -> None:
    assert make_target(name, channels, (16, 16)).outputs == outputs


@pytest.mark.parametrize("name", ["mean-colour", "downsized"])
@pytest.mark.parametrize("channels", [1, 3, 5])
def test_the_loss_of_colours_is_numpys(name: str, channels: int) -> None:
    target = make_target(name, channels, (4, 4))
    pixels = torch.from_numpy(_pixels(channels, 8, images=3))
    values = target.values(pixels, pixels.float())
    predicted = torch.randn(3, 4, target.outputs, generator=torch.Generator().manual_seed(1)) * 3
    loss, right = target.loss(predicted, values)
    expected = reference.colour_loss(
        predicted.double().numpy().reshape(12, -1), values.numpy().reshape(12, *values.shape[2:]), channels
    )
    assert loss.item() == pytest.approx(expected, rel=1e-5)
    assert right is not None
    likely = target._logits(predicted)
    shares = [torch.stack([logits.argmax(-1) == values[..., at] for at, logits in enumerate(likely)]).all(0)]
    assert right.item() == pytest.approx(shares[0].float().mean((1, 2)).sum().item())


def test_the_loss_of_pixels_is_the_mean_squared_error_of_what_the_model_sees() -> None:
    pixels = torch.from_numpy(_pixels(3, 8))
    target = make_target("patch", 3, (4, 4))
    seen = normalise(pixels, Preprocessing(image_size=(8, 8)))
    predicted = torch.randn(2, 4, 48, generator=torch.Generator().manual_seed(1))
    loss, right = target.loss(predicted, target.values(pixels, seen))
    wanted = patchify(pixels.numpy() / 127.5 - 1, (4, 4))
    assert right is None
    assert loss.item() == pytest.approx(((predicted.double().numpy() - wanted) ** 2).mean(), rel=1e-5)


@pytest.mark.parametrize("name", ["mean-colour", "downsized", "patch"])
def test_a_perfect_prediction_is_painted_as_the_image(name: str) -> None:
    """Cells of one colour in the middle of a bin come back as they are."""
    cells = np.random.default_rng(0).integers(0, 8, (1, 3, 8, 8)) * 32 + 16
    image = torch.from_numpy(cells.astype(np.uint8)).repeat_interleave(2, 2).repeat_interleave(2, 3)  # 16 x 16
    size, preprocessing = (2, 2) if name == "mean-colour" else (8, 8), Preprocessing(image_size=(16, 16))
    target = make_target(name, 3, size)
    values = target.values(image, normalise(image, preprocessing))
    predicted = values
    if isinstance(target, ColourTarget):
        predicted = torch.nn.functional.one_hot(values[..., 0], 512).float().flatten(2)
    places = torch.arange(values.shape[1])[None]
    painted = paste(torch.zeros_like(image), size, places, target.paint(predicted, preprocessing))
    assert torch.equal(painted, image)


def test_the_middle_of_a_bin_is_the_colour_of_a_class() -> None:
    assert colours_of([torch.tensor([0, 511, 8])], 3).tolist() == [[16, 16, 16], [240, 240, 240], [16, 48, 16]]
