"""Nearest neighbours among frozen features, for comparison: no weights are learned.

The k training images of the highest cosine similarity vote for their classes, each with the weight
exp(similarity / 0.07), as is usual for frozen features. k is 20, or all training images where there are fewer.
"""

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from vitrail.evaluation.defaults import NEIGHBOURS
from vitrail.evaluation.features import Matrix

TEMPERATURE = 0.07
SIMILARITIES = 2**24
"""Numbers in float32 that are compared at a time: 64 MiB; fewer make the products slower."""


def neighbours(
    features: Matrix,
    targets: Int[np.ndarray, "image"],
    num_classes: int,
    queries: Float[Tensor, "query representation"],
    *,
    most: int = NEIGHBOURS,
    temperature: float = TEMPERATURE,
) -> dict[str, Int[np.ndarray, "query"]]:
    """Let the nearest training images vote; of equal votes, the first class wins."""
    examples = F.normalize(features, dim=1)
    classes = torch.from_numpy(targets.astype(np.int64))
    answers = np.empty(len(queries), dtype=np.int64)
    step = max(SIMILARITIES // max(len(examples), examples.shape[1], num_classes), 1)
    for start in range(0, len(queries), step):
        block = F.normalize(queries[start : start + step], dim=1)
        near = (block @ examples.mT).topk(min(most, len(examples)), dim=1)
        votes = torch.zeros(len(block), num_classes, dtype=torch.float64)
        votes.scatter_add_(1, classes[near.indices], (near.values.double() / temperature).exp())
        answers[start : start + step] = votes.argmax(1).numpy()
    return {"neighbours": answers}
