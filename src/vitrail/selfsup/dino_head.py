"""DINO's head: an MLP to a bottleneck of length 1, and its cosines with K prototypes (Caron et al., 2021, App. C)."""

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from vitrail.base.shapes import Representation

Scores = Float[Tensor, "batch prototype"]


class DinoHead(nn.Module):
    """features -> Linear, GELU, Linear, GELU, Linear -> length 1 -> cosine with each prototype.

    The prototypes are the rows of a linear layer with weight norm, whose norms are fixed at 1: only directions learn.
    """

    def __init__(self, width: int, *, hidden: int, bottleneck: int, prototypes: int) -> None:
        super().__init__()
        self.mlp = nn.Sequential(
            nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, hidden), nn.GELU(), nn.Linear(hidden, bottleneck)
        )
        self.prototypes = nn.Linear(bottleneck, prototypes, bias=False)
        for layer in self.mlp:
            if isinstance(layer, nn.Linear):
                nn.init.trunc_normal_(layer.weight, std=0.02)
                nn.init.zeros_(layer.bias)

    def forward(self, features: Representation) -> Scores:
        """Score each prototype from -1 to 1."""
        directions = F.normalize(self.mlp(features), dim=1)
        return F.linear(directions, F.normalize(self.prototypes.weight, dim=1).to(directions.dtype))
