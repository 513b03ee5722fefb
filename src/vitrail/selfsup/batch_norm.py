"""Batch normalisation over the images of all ranks, by the statistics of the batch alone: no averages are kept."""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from vitrail.base.ranks import Ranks

Rows = Float[Tensor, "batch width"]
EPS = 1e-5


class BatchNorm(nn.Module):
    """y = (x - mean) / sqrt(var + eps), each column over the images of all ranks; then scale and shift, if learned."""

    def __init__(self, width: int, ranks: Ranks, *, learned: bool = True) -> None:
        super().__init__()
        self.ranks = ranks
        self.weight = nn.Parameter(torch.ones(width)) if learned else None
        self.bias = nn.Parameter(torch.zeros(width)) if learned else None

    def forward(self, rows: Rows) -> Rows:
        """Normalise a batch."""
        if self.ranks.world == 1:
            return F.batch_norm(rows, None, None, self.weight, self.bias, training=True, eps=EPS)
        normal = normalised(rows.float(), self.ranks).to(rows.dtype)
        return normal if self.weight is None or self.bias is None else normal * self.weight + self.bias


def normalised(rows: Rows, ranks: Ranks) -> Rows:
    """Take off the mean over all ranks' rows and divide by the deviation; gradients flow through both."""
    count = len(rows) * ranks.world
    centred = rows - ranks.sum_learned(rows.sum(0)) / count
    return centred * (ranks.sum_learned(centred.square().sum(0)) / count + EPS).rsqrt()
