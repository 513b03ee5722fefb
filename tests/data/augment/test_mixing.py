"""Mixup and cutmix."""

import math

import numpy as np
import pytest
import torch
from scipy import stats

from vitrail.base.errors import ConfigError
from vitrail.base.shapes import PixelBatch
from vitrail.data.augment.mixing import beta, cutmix, mix, mixup
from vitrail.data.augment.settings import Augmentation

MIXUP, CUTMIX = Augmentation(mixup=0.8), Augmentation(cutmix=1.0)


def batch(count: int, channels: int = 3, size: tuple[int, int] = (6, 8)) -> tuple[PixelBatch, torch.Tensor, np.ndarray]:
    array = np.random.default_rng(0).integers(0, 256, (count, *size, channels), dtype=np.uint8)
    return torch.from_numpy(array).permute(0, 3, 1, 2), torch.arange(count), np.arange(100, 100 + count)


@pytest.mark.parametrize("alpha", [0.1, 0.2, 0.4, 1.0, 2.0, 20.0])
def test_shares_follow_the_beta_distribution(alpha: float) -> None:
    draws = np.random.default_rng(0).random(5000)
    np.testing.assert_allclose(beta(alpha, draws), stats.beta.ppf(draws, alpha, alpha), atol=1e-6)


@pytest.mark.parametrize("alpha", [1e-6, 100.0])
def test_shares_at_the_bounds_are_numbers(alpha: float) -> None:
    shares = beta(alpha, np.random.default_rng(0).random(5000))
    assert ((shares >= 0) & (shares <= 1)).all()


@pytest.mark.parametrize("name", ["mixup", "cutmix"])
@pytest.mark.parametrize("alpha", [-1.0, 1e-320, 1000.0, math.inf, math.nan])
def test_shares_that_would_not_be_numbers_are_refused(name: str, alpha: float) -> None:
    with pytest.raises(ConfigError, match=f"{name} is .*, but must be 0 or from 1e-06 to 100"):
        Augmentation(**{name: alpha})


@pytest.mark.parametrize("channels", [1, 3, 13])
def test_mixup_blends_both_images_and_rounds(channels: int) -> None:
    images, _, _ = batch(4, channels)
    before = images.double()
    mixup(images, torch.tensor([0.3, 1.0]))
    np.testing.assert_allclose(images[0].double(), before[0] * 0.3 + before[1] * 0.7, atol=0.5001)
    np.testing.assert_allclose(images[1].double(), before[1] * 0.3 + before[0] * 0.7, atol=0.5001)
    assert torch.equal(images[2:].double(), before[2:])


@pytest.mark.parametrize("channels", [1, 3, 13])
def test_cutmix_exchanges_a_box_and_tells_what_stays(channels: int) -> None:
    images, _, _ = batch(2, channels)
    before = images.clone()
    share = cutmix(images, (1, 2, 3, 4))
    assert share == 1 - 12 / 48
    expected = before.clone()
    expected[0, :, 1:4, 2:6], expected[1, :, 1:4, 2:6] = before[1, :, 1:4, 2:6], before[0, :, 1:4, 2:6]
    assert torch.equal(images, expected)


def test_the_share_of_cutmix_is_the_share_of_the_pixels() -> None:
    images = torch.zeros(400, 1, 9, 13, dtype=torch.uint8)
    images[1::2] = 255
    _, shares = mix(images, torch.arange(400), np.arange(400), CUTMIX, 0)
    own = torch.where(
        torch.arange(400) % 2 == 1, images.flatten(1).float().mean(1) / 255, 1 - images.flatten(1).float().mean(1) / 255
    )
    torch.testing.assert_close(shares, own)
    assert 0.5 < shares.mean() < 0.75  # a box of a mean area of 1/2, less what is cut off at the edges


def test_partners_are_neighbours_and_the_odd_last_one_stays() -> None:
    images, targets, positions = batch(7)
    before = images.clone()
    partners, shares = mix(images, targets, positions, MIXUP, 0)
    assert partners.tolist() == [1, 0, 3, 2, 5, 4, 6]
    assert torch.equal(shares[0::2][:3], shares[1::2])
    assert shares[6] == 1
    assert torch.equal(images[6], before[6])
    assert ((shares >= 0) & (shares <= 1)).all()


def test_a_pair_is_mixed_the_same_way_in_any_slice_of_the_batch() -> None:
    for augmentation in (MIXUP, CUTMIX, Augmentation(mixup=0.2, cutmix=1.0, mix_probability=0.7)):
        images, targets, positions = batch(24)
        parts = [images[start : start + 8].clone() for start in (0, 8, 16)]
        whole = mix(images, targets, positions, augmentation, 5)
        for start, part in zip((0, 8, 16), parts, strict=True):
            some = slice(start, start + 8)
            partners, shares = mix(part, targets[some], positions[some], augmentation, 5)
            assert torch.equal(part, images[some])
            assert torch.equal(partners, whole[0][some])
            assert torch.equal(shares, whole[1][some])


def test_as_many_pairs_are_mixed_as_asked_half_of_them_by_each_way() -> None:
    count = 4000
    images = torch.zeros(count, 1, 16, 16, dtype=torch.uint8)
    images[1::2] = 255
    targets = torch.arange(count)
    partners, _ = mix(images, targets, np.arange(count), Augmentation(mixup=5.0, cutmix=5.0, mix_probability=0.6), 0)
    mixed = (partners != targets)[::2]
    assert abs(mixed.float().mean().item() - 0.6) < 0.04
    between = ((images > 0) & (images < 255)).flatten(1).any(1)[::2]
    assert abs(between.sum().item() / mixed.sum().item() - 0.5) < 0.05
    assert not between[~mixed].any()
