"""Mixup and cutmix: pairs of neighbours in the stream share their pixels and their classes.

The samples at places 0 and 1, 2 and 3, ... of a batch are partners. What happens to a pair is a function of its place
in the stream alone, so that ranks, workers and micro-batches of an even size change nothing; an odd last one stays.
"""

import math

import numpy as np
import torch
from jaxtyping import Float32, Int64
from torch import Tensor

from vitrail.base.seeds import key, keys
from vitrail.base.shapes import PixelBatch
from vitrail.data.augment import Augmentation
from vitrail.data.crop import Box
from vitrail.data.permutation import Positions

Targets = Int64[Tensor, "batch"]
Shares = Float32[Tensor, "batch"]


def mix(
    images: PixelBatch, targets: Targets, positions: Positions, augmentation: Augmentation, seed: int
) -> tuple[Targets, Shares]:
    """Mix the pairs of a batch in place; return each image's partner class and the share of its own class.

    The loss of an image is share * loss(target) + (1 - share) * loss(partner).
    """
    partners, shares = targets.clone(), torch.ones(targets.shape[0])
    pairs = len(positions) // 2
    for first, pair_key in zip(range(0, 2 * pairs, 2), keys(key(seed, "mix"), positions[: 2 * pairs : 2]), strict=True):
        draws = np.random.Generator(np.random.Philox(key=int(pair_key)))
        if draws.random() >= augmentation.mix_probability:
            continue
        pair = images[first : first + 2]
        cuts = augmentation.cutmix > 0 and (not augmentation.mixup or draws.random() < 0.5)
        alpha = augmentation.cutmix if cuts else augmentation.mixup
        share = float(draws.beta(alpha, alpha))
        shares[first : first + 2] = cutmix(pair, share, draws) if cuts else mixup(pair, share)
        partners[first : first + 2] = targets[first : first + 2].flip(0)
    return partners, shares


def mixup(pair: PixelBatch, share: float) -> float:
    """Blend two images with each other in place, rounding to the nearest value; return the share of their own."""
    own = pair.float()
    pair.copy_((own * share + own.flip(0) * (1 - share)).round_())
    return share


def cutmix(pair: PixelBatch, share: float, draws: np.random.Generator) -> float:
    """Exchange a box between two images in place; return the share of the pixels that stay."""
    _, _, height, width = pair.shape
    top, left, rows, columns = cutmix_box((height, width), share, draws)
    box = pair[:, :, top : top + rows, left : left + columns]
    box.copy_(box.flip(0))
    return 1 - rows * columns / (height * width)


def cutmix_box(size: tuple[int, int], share: float, draws: np.random.Generator) -> Box:
    """Choose a box of the image's shape and 1 - share of its area around a random centre, cut at the edges."""
    height, width = size
    half = math.sqrt(1 - share) / 2
    y, x = draws.random() * height, draws.random() * width
    top, bottom = max(round(y - half * height), 0), min(round(y + half * height), height)
    left, right = max(round(x - half * width), 0), min(round(x + half * width), width)
    return top, left, bottom - top, right - left
