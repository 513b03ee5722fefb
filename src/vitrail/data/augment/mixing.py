"""Mixup and cutmix: pairs of neighbours in the stream share their pixels and their classes.

The samples at places 0 and 1, 2 and 3, ... of a batch are partners. What happens to a pair is a function of its place
in the stream alone, so that ranks, workers and micro-batches of an even size change nothing; an odd last one stays.
"""

from functools import lru_cache

import numpy as np
import torch
from jaxtyping import Float, Float32, Int64
from torch import Tensor

from vitrail.base.seeds import key, keys, uniform
from vitrail.base.shapes import PixelBatch
from vitrail.data.augment.crop import Box
from vitrail.data.augment.settings import Augmentation
from vitrail.data.permutation import Positions

Targets = Int64[Tensor, "batch"]
Shares = Float32[Tensor, "batch"]
PairShares = Float[Tensor, "pair"]
Numbers = Float[np.ndarray, "pair"]

MIXED, CUT, SHARE, DOWN, RIGHT = range(5)  # which of a pair's draws decides what
TABLE = 4096


def mix(
    images: PixelBatch, targets: Targets, positions: Positions, augmentation: Augmentation, seed: int
) -> tuple[Targets, Shares]:
    """Mix the pairs of a batch in place; return each image's partner class and the share of its own class.

    The loss of an image is share * loss(target) + (1 - share) * loss(partner).
    """
    pairs = len(positions) // 2
    draws = uniform(keys(key(seed, "mix"), positions[: 2 * pairs : 2]), 5).T
    mixed = draws[MIXED] < augmentation.mix_probability
    cuts = draws[CUT] < (0.5 if augmentation.mixup else 1.0) if augmentation.cutmix else np.zeros(pairs, dtype=bool)
    shares = np.ones(pairs)
    if (blended := np.flatnonzero(mixed & ~cuts)).size:
        shares[blended] = beta(augmentation.mixup, draws[SHARE, blended])
        mixup(images[: 2 * pairs], torch.from_numpy(np.where(cuts, 1.0, shares)))
    if (cut := np.flatnonzero(mixed & cuts)).size:
        areas = 1 - beta(augmentation.cutmix, draws[SHARE, cut])
        for pair, area in zip(cut, areas, strict=True):
            box = cutmix_box((images.shape[2], images.shape[3]), area, draws[DOWN, pair], draws[RIGHT, pair])
            shares[pair] = cutmix(images[2 * pair : 2 * pair + 2], box)
    both = torch.from_numpy(np.repeat(mixed, 2))
    partners, weights = targets.clone(), torch.ones(len(positions))
    swapped = targets[: 2 * pairs].view(-1, 2).flip(1).reshape(-1)
    partners[: 2 * pairs] = torch.where(both, swapped, targets[: 2 * pairs])
    weights[: 2 * pairs] = torch.from_numpy(np.repeat(shares, 2)).float()
    return partners, weights


def mixup(images: PixelBatch, shares: PairShares) -> None:
    """Blend the two images of each pair in place, rounding to the nearest value; a share of 1 changes nothing."""
    pairs = images.unflatten(0, (-1, 2))
    own = pairs.float()
    weight = shares.float()[:, None, None, None, None]
    pairs.copy_((own * weight + own.flip(1) * (1 - weight)).round_())


def cutmix(pair: PixelBatch, box: Box) -> float:
    """Exchange a box between two images in place; return the share of the pixels that stay."""
    top, left, rows, columns = box
    inside = pair[:, :, top : top + rows, left : left + columns]
    inside.copy_(inside.flip(0))
    return 1 - rows * columns / (pair.shape[2] * pair.shape[3])


def cutmix_box(size: tuple[int, int], area: float, down: float, right: float) -> Box:
    """Return a box of the image's shape and a share of its area around a random centre, cut off at the edges."""
    height, width = size
    half = area**0.5 / 2
    top, bottom = max(round((down - half) * height), 0), min(round((down + half) * height), height)
    left, end = max(round((right - half) * width), 0), min(round((right + half) * width), width)
    return top, left, bottom - top, end - left


def beta(alpha: float, draws: Numbers) -> Numbers:
    """Turn numbers in [0, 1) into ones that follow Beta(alpha, alpha), by the inverse of its distribution."""
    places, masses = _lower_half(alpha)
    low = draws < 0.5
    quantiles = np.interp(np.where(low, draws, 1 - draws) * 2, masses, places) ** (1 / min(alpha, 1.0))
    return np.where(low, quantiles, 1 - quantiles)


@lru_cache
def _lower_half(alpha: float) -> tuple[Numbers, Numbers]:
    """Tabulate the distribution of x below 1/2, over t = x^alpha when alpha is below 1.

    There the density x^(alpha - 1) (1 - x)^(alpha - 1) has a pole at 0; over t it is (1 - x)^(alpha - 1), and smooth.
    """
    power = min(alpha, 1.0)
    places = np.linspace(0, 0.5**power, TABLE)
    x = places ** (1 / power)
    density = x ** (alpha - power) * (1 - x) ** (alpha - 1)
    masses = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) / 2)])
    return places, masses / masses[-1]
