"""How sharp attention is: the entropy of its rows."""

import torch

from vitrail.analysis.distance import HeadMeans
from vitrail.base.shapes import AttentionMap


def attention_entropy(attention: AttentionMap) -> HeadMeans:
    """Return -sum_k A_qk ln A_qk in nats, as a mean over all queries q, for each image and head.

    It is 0 for attention to a single token, and ln T for equal attention to all T tokens.
    """
    heads = [-torch.special.xlogy(head, head).sum(dim=2).mean(dim=1) for head in attention.unbind(dim=1)]
    return torch.stack(heads, dim=1)
