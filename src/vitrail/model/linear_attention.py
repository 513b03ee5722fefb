"""Attention that is linear in the number of tokens (Katharopoulos et al. 2020)."""

import torch
import torch.nn.functional as F

from vitrail.base.shapes import AttentionMap, KeptTokens, Keys, Queries, Tokens
from vitrail.model.attention import SelfAttention
from vitrail.model.config import ViTConfig
from vitrail.model.merging import Merging
from vitrail.model.patches import Size
from vitrail.model.rotary import Rotation
from vitrail.model.trace import MapRecorder
from vitrail.model.units import Unit


def positive(features: Queries) -> Queries:
    """Apply phi(x) = elu(x) + 1, which is above 0."""
    return F.elu(features) + 1


def linear_attend(queries: Queries, keys: Keys, values: Keys) -> Queries:
    """Compute phi(q) (phi(k)^T v) / (phi(q) sum phi(k)), for positive features, without a weight of A in memory."""
    state = keys.mT @ values  # batch head head_dim head_dim
    total = keys.sum(dim=2, keepdim=True)
    return (queries @ state) / (queries @ total.mT)


def linear_map(queries: Queries, keys: Keys) -> AttentionMap:
    """Compute A = phi(q) phi(k)^T / (phi(q) sum phi(k)), with every weight in memory."""
    weights = queries @ keys.mT
    return weights / weights.sum(dim=3, keepdim=True)


class LinearSelfAttention(SelfAttention):
    """Self-attention whose weights are products of positive features, normalised."""

    def forward(
        self,
        tokens: Tokens,
        *,
        first_only: bool = False,
        maps: MapRecorder | None = None,
        rotation: Rotation | None = None,  # noqa: ARG002 - refused with this mixer
        grid: Size | None = None,  # noqa: ARG002 - for mixers on a grid
        merging: Merging | None = None,  # noqa: ARG002 - refused with this mixer
    ) -> KeptTokens:
        """Let every token attend to every token, or only the first one; `maps` asks for A of some heads."""
        queries, keys, values = self.project(tokens)
        queries, keys = positive(queries), positive(keys)
        shown = queries[:, :, :1] if first_only else queries
        if maps is None:
            mixed = linear_attend(shown, keys, values)
        else:
            weights = linear_map(queries[:, maps.heads], keys[:, maps.heads])
            maps.take(weights)
            mixed = linear_attend(shown, keys, values)
            rows = weights[:, :, : shown.shape[2]] @ values[:, maps.heads]  # so that gradients reach A
            mixed = mixed.index_copy(1, torch.tensor(maps.heads, device=mixed.device), rows)
        return self.dropout(self.out(mixed.transpose(1, 2).flatten(2)))


def linear_cost(config: ViTConfig, *, first_only: bool = False) -> Unit:
    """Count one layer; with `first_only`, only the class token is a query, but all products are counted."""
    tokens, dim, heads = config.num_tokens, config.dim, config.num_heads
    wide, state = tokens * dim, dim * dim // heads
    macs = 4 * wide * dim + 2 * tokens * state + wide
    rows = 1 if first_only else tokens
    # the input; q, k, v; then k and v, the queries twice, their product and the output's input in the order of heads
    activations = 6 * wide + 4 * rows * dim + rows * heads + state + dim
    return Unit(macs=macs, activations=activations + (rows * dim if config.dropout else 0))
