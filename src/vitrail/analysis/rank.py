"""How many directions features use: the effective rank (Roy and Vetterli, 2007)."""

import torch
from jaxtyping import Float
from torch import Tensor


def effective_rank(features: Float[Tensor, "row width"]) -> float:
    """Return exp of the entropy of s_i / sum s, with s the singular values of the centred features.

    It is r where r directions are used equally, and at most the number of rows less one, or the width; 0 where all
    rows are the same.
    """
    centred = features.double() - features.double().mean(dim=0)
    values = torch.linalg.svdvals(centred)
    total = values.sum()
    if not total > centred.abs().max() * torch.finfo(torch.float32).eps:
        return 0.0
    shares = values / total
    return float(torch.exp(-torch.special.xlogy(shares, shares).sum()))
