"""How alike layers are: centred kernel alignment, linear and unbiased (Kornblith et al., 2019; Song et al., 2012).

    CKA(X, Y) = H(K, L) / sqrt(H(K, K) H(L, L)),  K = X X^T,  L = Y Y^T,  both with a diagonal of zeros
    H(K, L) = (tr(K L) + 1'K1 1'L1 / ((n - 1)(n - 2)) - 2 1'K L 1 / (n - 2)) / (n (n - 3))

H is an unbiased estimate: unlike the plain formula it does not grow with the width of the features when images are few.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from vitrail.base.errors import InputError

Features = Float[Tensor, "image _"]
Gram = Float[Tensor, "image other"]

FEWEST = 4
"""Images below which the estimate does not exist."""


def gram(features: Features) -> Gram:
    """Return X X^T of centred features, with a diagonal of zeros."""
    if len(features) < FEWEST:
        raise InputError(f"CKA needs at least {FEWEST} images, but there are {len(features)}.")
    centred = features.double() - features.double().mean(dim=0)
    return (centred @ centred.T).fill_diagonal_(0.0)


def hsic(first: Gram, second: Gram) -> float:
    """Return the unbiased estimate of the Hilbert-Schmidt independence criterion, from matrices without a diagonal."""
    n = len(first)
    trace = (first * second).sum()
    sums = first.sum() * second.sum() / ((n - 1) * (n - 2))
    cross = first.sum(dim=0) @ second.sum(dim=0) * 2 / (n - 2)
    return float((trace + sums - cross) / (n * (n - 3)))


def cka(first: Sequence[Features], second: Sequence[Features]) -> Float[Tensor, "layer other_layer"]:
    """Return how alike each layer of the first network is to each of the second, on the same images.

    1 is alike but for a rotation and a scale, 0 not at all; the estimate may be below 0 by chance. It is NaN where a
    layer gives the same for every image.
    """
    ours, theirs = ([gram(features) for features in layers] for layers in (first, second))
    own, other = ([hsic(matrix, matrix) for matrix in matrices] for matrices in (ours, theirs))
    table = torch.full((len(ours), len(theirs)), torch.nan, dtype=torch.float64)
    for row, (mine, size) in enumerate(zip(ours, own, strict=True)):
        for column, (yours, other_size) in enumerate(zip(theirs, other, strict=True)):
            if size > 0 and other_size > 0:
                table[row, column] = hsic(mine, yours) / (size * other_size) ** 0.5
    return table
