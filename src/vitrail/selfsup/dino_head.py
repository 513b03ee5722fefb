"""DINO's head: an MLP to a bottleneck of length 1, and its cosines with K prototypes (Caron et al., 2021, App. C)."""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from vitrail.base.products import Linear
from vitrail.base.shapes import Representation

Scores = Float[Tensor, "batch prototype"]
SHORTEST = 1e-12
"""Length below which a prototype has no direction."""


class DinoHead(nn.Module):
    """features -> Linear, GELU, Linear, GELU, Linear -> length 1 -> cosine with each prototype.

    The prototypes are the rows of a linear layer with weight norm, whose norms are fixed at 1: only directions learn.
    """

    def __init__(self, width: int, *, hidden: int, bottleneck: int, prototypes: int) -> None:
        super().__init__()
        self.mlp = nn.Sequential(
            Linear(width, hidden), nn.GELU(), Linear(hidden, hidden), nn.GELU(), Linear(hidden, bottleneck)
        )
        self.prototypes = Linear(bottleneck, prototypes, bias=False)
        for layer in self.mlp:
            if isinstance(layer, nn.Linear):
                nn.init.trunc_normal_(layer.weight, std=0.02)
                nn.init.zeros_(layer.bias)

    def forward(self, features: Representation) -> Scores:
        """Score each prototype from -1 to 1.

        A score is divided by its prototype's length, which is the same as a prototype of length 1 and touches a few
        scores in place of K x 256 weights, forward and backward.
        """
        directions = F.normalize(self.mlp(features), dim=1)
        lengths = torch.linalg.vector_norm(self.prototypes.weight, dim=1).clamp_min(SHORTEST)
        return self.prototypes(directions) / lengths
