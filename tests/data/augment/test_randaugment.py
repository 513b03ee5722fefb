"""RandAugment, beside Pillow's affine transforms."""

import math

import numpy as np
import pytest
import torch
from PIL import Image
from scipy.stats import chisquare

from tests.data.augment.test_enhance import PHOTO, pixels
from vitrail.base.seeds import key, keys, uniform
from vitrail.data.augment import randaugment as module
from vitrail.data.augment.randaugment import GREY, OPERATIONS, operate, randaugment

HEIGHT, WIDTH = PHOTO.shape[:2]


def pillow(matrix: tuple[float, ...]) -> np.ndarray:
    """Pillow's transform by a matrix of places seen from the top left corner."""
    image = Image.fromarray(PHOTO)
    return np.asarray(
        image.transform(image.size, Image.Transform.AFFINE, matrix, Image.Resampling.NEAREST, fillcolor=(GREY,) * 3)
    )


@pytest.mark.parametrize("level", [-1.0, -0.37, 0.21, 0.9])
def test_shears_and_shifts_take_the_pixels_that_pillow_takes(level: float) -> None:
    across, down = WIDTH / 2, HEIGHT / 2
    for operation, matrix in {
        "shear_x": (1, 0.3 * level, -0.3 * level * down, 0, 1, 0),
        "shear_y": (1, 0, 0, 0.3 * level, 1, -0.3 * level * across),
        "translate_x": (1, 0, 0.45 * level * WIDTH, 0, 1, 0),
        "translate_y": (1, 0, 0, 0, 1, 0.45 * level * HEIGHT),
    }.items():
        ours = operate(pixels(PHOTO), operation, level).permute(1, 2, 0).numpy()  # type: ignore[arg-type]
        same = (ours == pillow(matrix)).all(2).mean()
        assert same > 0.98, operation  # they may differ where a place is a tie


@pytest.mark.parametrize("level", [-1.0, 0.33, 1.0])
def test_a_rotation_takes_the_pixels_that_pillow_takes(level: float) -> None:
    theirs = np.asarray(Image.fromarray(PHOTO).rotate(30 * level, Image.Resampling.NEAREST, fillcolor=(GREY,) * 3))
    ours = operate(pixels(PHOTO), "rotate", -level).permute(1, 2, 0).numpy()
    assert (ours == theirs).all(2).mean() > 0.98


def test_a_quarter_turn_by_the_same_rule_is_exact() -> None:
    square = torch.from_numpy(np.random.default_rng(0).integers(0, 256, (4, 8, 8), dtype=np.uint8))
    quarter = math.pi / 2
    turned = module.warp(square, (math.cos(quarter), math.sin(quarter)), (-math.sin(quarter), math.cos(quarter)))
    assert torch.equal(turned, torch.rot90(square, -1, (1, 2)))


@pytest.mark.parametrize("channels", [1, 3, 4, 13])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_every_operation_keeps_the_shape_and_at_level_zero_the_image(operation, channels: int) -> None:
    image = torch.from_numpy(np.random.default_rng(0).integers(0, 256, (channels, 12, 17), dtype=np.uint8))
    for level in (-1.0, 0.5, 1.0):
        assert operate(image, operation, level).shape == image.shape
    if operation not in ("autocontrast", "equalize"):
        assert torch.equal(operate(image, operation, 0.0), image)
    assert operate(image[:, :1, :1], operation, 1.0).shape == (channels, 1, 1)


@pytest.mark.parametrize("operation", ["solarize", "posterize", "brightness", "contrast", "saturation", "sharpness"])
def test_a_higher_level_changes_more(operation) -> None:
    change = [
        (operate(pixels(PHOTO), operation, level).int() - pixels(PHOTO).int()).abs().float().mean().item()
        for level in (0.0, 0.5, 1.0)
    ]
    assert change[0] < change[1] < change[2]


def test_every_operation_is_equally_likely_in_both_directions(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[str, float]] = []

    def note(image, operation, level):
        seen.append((operation, level))
        return image

    monkeypatch.setattr(module, "operate", note)
    for draws in uniform(keys(key(0, "test"), np.arange(7000)), 4).tolist():
        randaugment(torch.zeros(3, 2, 2, dtype=torch.uint8), 7.0, draws)
    counts = [seen.count((operation, level)) for operation in OPERATIONS for level in (-0.7, 0.7)]
    assert sum(counts) == 14_000
    assert chisquare(counts).pvalue > 1e-4
