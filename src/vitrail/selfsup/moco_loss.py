"""InfoNCE: of the keys of all images, find the one of one's own."""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

Vectors = Float[Tensor, "batch width"]


def info_nce(
    queries: Vectors, keys: Float[Tensor, "key width"], temperature: float, *, first: int = 0
) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
    """Return the mean of -log softmax_k(q . k / t) at each query's own key, times 2 t; and how many find it.

    Vectors are taken at length 1. The key of query i is number first + i.
    """
    queries, keys = F.normalize(queries.float(), dim=1), F.normalize(keys.float(), dim=1)
    logits = queries @ keys.T / temperature
    own = torch.arange(first, first + len(queries), device=queries.device)
    right = (logits.detach().argmax(1) == own).sum()
    return F.cross_entropy(logits, own) * (2 * temperature), right.float()
