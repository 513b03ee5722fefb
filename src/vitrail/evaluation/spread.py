"""How far features lie apart, and whether images are known again by them: figures that need no labels."""

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from vitrail.evaluation.features import Matrix

COLLAPSED = 0.02
"""The spread below which features hold next to nothing about an image."""


def spread(features: Matrix) -> float:
    """Return sqrt(D) times the mean deviation of the values of normalised features over images.

    Directions that are spread evenly have 1; features of one direction, which have collapsed, have 0.
    """
    directions = F.normalize(features.double(), dim=1)
    return float(directions.std(dim=0, correction=0).mean() * features.shape[1] ** 0.5)


def nearest(
    features: Matrix, queries: Float[Tensor, "query representation"], count: int
) -> Int[Tensor, "query neighbour"]:
    """Return the images of the highest cosine similarity to each query, the nearest first."""
    similar = F.normalize(queries, dim=1) @ F.normalize(features, dim=1).mT
    return similar.topk(min(count, len(features)), dim=1).indices


def copies_found(features: Matrix, copies: Matrix) -> float:
    """Return the share of images whose changed copy is nearer to them than to every other image."""
    return float((nearest(features, copies, 1)[:, 0] == torch.arange(len(copies))).double().mean())
