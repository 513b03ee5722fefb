"""Nearest neighbours among frozen features, for comparison: no weights are learned at all.

The k training images of the highest cosine similarity vote for their classes, each with the weight
exp(similarity / 0.07), as is usual for frozen features. k is 20, or all training images where there are fewer.
"""

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from vitrail.evaluation.features import Matrix

NEIGHBOURS = 20
TEMPERATURE = 0.07
SIMILARITIES = 2**24
"""Numbers in float32 that are compared at a time: 64 MiB; fewer make the products slower."""


def neighbours(
    features: Matrix,
    targets: Int[np.ndarray, "image"],
    num_classes: int,
    asked: Float[Tensor, "asked representation"],
    *,
    most: int = NEIGHBOURS,
    temperature: float = TEMPERATURE,
) -> dict[str, Int[np.ndarray, "asked"]]:
    """Let the nearest training images vote; of equal votes, the first class wins."""
    known = F.normalize(features, dim=1)
    classes = torch.from_numpy(targets.astype(np.int64))
    found = np.empty(len(asked), dtype=np.int64)
    step = max(SIMILARITIES // max(len(known), known.shape[1], num_classes), 1)
    for start in range(0, len(asked), step):
        some = F.normalize(asked[start : start + step], dim=1)
        near = (some @ known.mT).topk(min(most, len(known)), dim=1)
        votes = torch.zeros(len(some), num_classes, dtype=torch.float64)
        votes.scatter_add_(1, classes[near.indices], (near.values.double() / temperature).exp())
        found[start : start + step] = votes.argmax(1).numpy()
    return {"neighbours": found}
