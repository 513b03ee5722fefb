"""The whole of augmentation: settings, geometry and the chain."""

import dataclasses

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st

from vitrail.base.errors import ConfigError
from vitrail.base.seeds import key, keys, uniform
from vitrail.base.settings import from_dict, to_dict
from vitrail.base.shapes import PixelBatch
from vitrail.data.augment import enhance
from vitrail.data.augment.apply import NO_AUGMENTATION, Augmentation, augment, augment_all
from vitrail.data.augment.crop import inception_box
from vitrail.data.augment.geometry import bilinear, resize_boxes
from vitrail.data.augment.jitter import jitter
from vitrail.data.pixels.resize import resize, resize_box

EVERYTHING = Augmentation(
    brightness=0.4, contrast=0.4, saturation=0.4, hue=0.1, layers=2, magnitude=9.0, erase=0.5, mixup=0.2, cutmix=1.0
)


def noise(count: int, channels: int, height: int, width: int) -> PixelBatch:
    array = np.random.default_rng(0).integers(0, 256, (count, height, width, channels), dtype=np.uint8)
    return torch.from_numpy(array).permute(0, 3, 1, 2)


def draws(count: int, augmentation: Augmentation, name: str = "test") -> list[list[float]]:
    return uniform(keys(key(0, name), np.arange(count)), augmentation.draws).tolist()


def test_settings_survive_json() -> None:
    assert from_dict(Augmentation, to_dict(EVERYTHING)) == EVERYTHING


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"crop": "inceptoin"}, "crop is 'inceptoin'.*Did you mean inception"),
        ({"pad_mode": "black"}, "pad_mode"),
        ({"interpolation": "cubic"}, "Did you mean bicubic"),
        ({"area": (0.0, 1.0)}, "area"),
        ({"area": (0.5, 0.1)}, "area"),
        ({"area": (0.5, 1.5)}, "area.*at most 1"),
        ({"aspect": (0.0, 1.0)}, "aspect"),
        ({"aspect": (1.0, float("inf"))}, "aspect"),
        ({"erase_area": (0.1, 2.0)}, "erase_area"),
        ({"flip": 1.1}, "flip is 1.1"),
        ({"flip": float("nan")}, "flip"),
        ({"brightness": -0.1}, "brightness"),
        ({"hue": 0.6}, "hue"),
        ({"magnitude": 11.0}, "magnitude"),
        ({"layers": -1}, "layers"),
        ({"pad": -1}, "pad"),
        ({"mixup": -0.1}, "mixup"),
        ({"cutmix": float("nan")}, "cutmix"),
        ({"mix_probability": 2.0}, "mix_probability"),
    ],
)
def test_settings_that_no_image_can_go_through_are_refused(wrong: dict, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Augmentation(**wrong)


@given(st.data(), st.booleans(), st.sampled_from([1, 3, 4, 13]))
def test_a_batch_of_boxes_is_resized_as_in_double_precision_within_a_level(
    data, antialias: bool, channels: int
) -> None:
    height, width = data.draw(st.tuples(*[st.integers(2, 40)] * 2))
    size = data.draw(st.tuples(*[st.integers(1, 40)] * 2))
    images = noise(4, channels, height, width)
    boxes = []
    for _ in range(4):
        rows, columns = data.draw(st.tuples(st.integers(1, height), st.integers(1, width)))
        top, left = data.draw(st.tuples(st.integers(0, height - rows), st.integers(0, width - columns)))
        boxes.append((top, left, rows, columns))
    ours = resize_boxes(images, torch.tensor(boxes), size, antialias)
    for image, (top, left, rows, columns), made in zip(images, boxes, ours, strict=True):
        part = image[None, :, top : top + rows, left : left + columns].double().contiguous()
        expected = F.interpolate(part, size, mode="bilinear", align_corners=False, antialias=antialias)[0]
        assert (made - expected).abs().max() <= 1.05  # half a level for the rows, half for the columns


def test_the_weights_of_a_resized_span_written_out() -> None:
    weights = bilinear(torch.tensor([3]), torch.tensor([4]), 10, 8, False)[0] / 2**14
    for new in range(8):
        centre = 3 + (new + 0.5) * 4 / 8 - 0.5
        low = int(np.floor(centre))
        expected = np.zeros(10)
        for at, share in ((low, 1 - (centre - low)), (low + 1, centre - low)):
            expected[min(max(at, 3), 6)] += share  # the edge of the span repeats
        np.testing.assert_allclose(weights[new].numpy(), expected, atol=2**-14)


@pytest.mark.parametrize("crop", ["none", "inception", "pad"])
@pytest.mark.parametrize("size", [(32, 32), (20, 28), (60, 50)])
@pytest.mark.parametrize("channels", [1, 3, 13])
def test_an_image_comes_out_the_same_alone_and_in_any_batch(crop, size: tuple[int, int], channels: int) -> None:
    augmentation = dataclasses.replace(EVERYTHING, crop=crop)
    images, numbers = noise(70, channels, 32, 32), draws(70, augmentation)
    large = noise(1, channels, 70, 60)[0]
    alone = torch.stack([augment(image, augmentation, size, one) for image, one in zip(images, numbers, strict=True)])
    together = augment_all(images, augmentation, size, channels, numbers)
    assert torch.equal(together, alone)
    mixed = augment_all([images[5], large, images[6]], augmentation, size, channels, [numbers[at] for at in (5, 0, 6)])
    assert torch.equal(mixed[0], alone[5])
    assert torch.equal(mixed[2], alone[6])
    assert torch.equal(mixed[1], augment(large, augmentation, size, numbers[0]))
    assert together.is_contiguous(memory_format=torch.channels_last)


@pytest.mark.parametrize("interpolation", ["nearest", "bilinear", "bicubic", "lanczos"])
@pytest.mark.parametrize("side", [30, 90])
def test_crop_and_flip_are_what_their_draws_say(interpolation, side: int) -> None:
    augmentation = Augmentation(interpolation=interpolation, antialias=True)
    image = noise(1, 3, side, side + 5)[0]
    flipped = 0
    for numbers in draws(20, augmentation):
        box = inception_box((side, side + 5), augmentation.area, augmentation.aspect, numbers[:22])
        expected = resize_box(image, box, (16, 24), interpolation, True)
        flipped += numbers[22] < 0.5
        expected = expected.flip(2) if numbers[22] < 0.5 else expected
        assert (augment(image, augmentation, (16, 24), numbers).int() - expected.int()).abs().max() <= 2
    assert 0 < flipped < 20


@pytest.mark.parametrize("side", [20, 90])
def test_without_augmentation_an_image_is_only_resized(side: int) -> None:
    image = noise(1, 3, side, side)[0]
    numbers = draws(1, NO_AUGMENTATION)[0]
    assert torch.equal(augment(image, NO_AUGMENTATION, (side, side), numbers), image)
    resized = augment(image, NO_AUGMENTATION, (16, 16), numbers)
    assert (resized.int() - resize(image, (16, 16), "bilinear", False).int()).abs().max() <= 2


@pytest.mark.parametrize("side", [20, 90])
def test_the_flip_happens_as_often_as_asked(side: int) -> None:
    augmentation = Augmentation(crop="none", flip=0.3)
    image = noise(1, 1, side, side)[0]
    flipped = [
        torch.equal(augment(image, augmentation, (side, side), one), image.flip(2)) for one in draws(1000, augmentation)
    ]
    assert abs(np.mean(flipped) - 0.3) < 0.05


def test_jitter_draws_its_factors_from_around_one() -> None:
    augmentation = Augmentation(brightness=0.4)
    image = torch.full((3, 4, 4), 100, dtype=torch.uint8)
    levels = [jitter(image, augmentation, one[:8])[0, 0, 0].item() for one in draws(2000, augmentation)]
    assert min(levels) >= 59
    assert max(levels) <= 140
    assert abs(np.mean(levels) - 99.5) < 1.5
    assert np.std(levels) == pytest.approx(80 / np.sqrt(12), rel=0.05)


def test_jitter_changes_colours_in_any_order() -> None:
    augmentation = Augmentation(brightness=0.4, contrast=0.4)
    image = noise(1, 3, 6, 6)[0]
    bright_first = jitter(image, augmentation, [0.9, 0.1, 0.5, 0.5, 0.1, 0.2, 0.3, 0.4])
    contrast_first = jitter(image, augmentation, [0.9, 0.1, 0.5, 0.5, 0.2, 0.1, 0.3, 0.4])
    assert torch.equal(bright_first, enhance.contrast(enhance.brightness(image, 1.32), 0.68))
    assert torch.equal(contrast_first, enhance.brightness(enhance.contrast(image, 0.68), 1.32))


def test_images_of_a_single_pixel_or_row_are_augmented_too() -> None:
    for height, width in ((1, 1), (1, 5000), (700, 1)):
        for crop in ("none", "inception", "pad"):
            augmentation = dataclasses.replace(EVERYTHING, crop=crop)
            done = augment(noise(1, 3, height, width)[0], augmentation, (24, 16), draws(1, augmentation)[0])
            assert done.shape == (3, 24, 16)


def test_the_picture_itself_is_never_changed() -> None:
    for side in (20, 90):
        image = noise(1, 3, side, side)[0]
        before = image.clone()
        for numbers in draws(20, EVERYTHING):
            augment(image, EVERYTHING, (side, side), numbers)
        assert torch.equal(image, before)
