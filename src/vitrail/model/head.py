"""From tokens to logits: pooling, the representation layer, the last linear layer (Eq. 4, App. D.3)."""

import torch
from torch import nn

from vitrail.base.shapes import KeptTokens, Keys, Logits, Pooled, PoolWeights, Queries, Representation
from vitrail.model import kernels
from vitrail.model.attention import attention_map
from vitrail.model.config import ViTConfig
from vitrail.model.mlp import Mlp
from vitrail.model.units import Unit


class AttentionPool(nn.Module):
    """A learned query attends to all tokens, then an MLP with a residual (MAP)."""

    def __init__(self, config: ViTConfig) -> None:
        super().__init__()
        self.num_heads = config.num_heads
        self.probe = nn.Parameter(torch.empty(1, config.dim))
        self.query = nn.Linear(config.dim, config.dim)
        self.key_value = nn.Linear(config.dim, 2 * config.dim)
        self.out = nn.Linear(config.dim, config.dim)
        self.norm = nn.LayerNorm(config.dim, eps=config.norm_eps)
        self.mlp = Mlp(config.dim, config.mlp_dim, gelu=config.gelu, dropout=config.dropout)

    def forward(self, tokens: KeptTokens) -> Pooled:
        """Pool a sequence into one vector."""
        query, keys, values = self.project(tokens)
        pooled = self.out(kernels.attend(query, keys, values).transpose(1, 2).flatten(2))
        return (pooled + self.mlp(self.norm(pooled))).squeeze(1)

    def project(self, tokens: KeptTokens) -> tuple[Queries, Keys, Keys]:
        """Compute the learned query, and a key and a value of each token."""
        query = self.query(self.probe).expand(tokens.shape[0], 1, -1)
        query = query.unflatten(2, (self.num_heads, -1)).transpose(1, 2)
        keys, values = self.key_value(tokens).unflatten(2, (2, self.num_heads, -1)).permute(2, 0, 3, 1, 4)
        return query, keys, values

    def weights(self, tokens: KeptTokens) -> PoolWeights:
        """Return the share of each token, as a mean over heads."""
        query, keys, _ = self.project(tokens)
        return attention_map(query, keys).mean(dim=1).squeeze(1)


class Head(nn.Module):
    """Pool, then tanh(Linear(D -> R)) where there is a representation layer, then Linear(-> K)."""

    def __init__(self, config: ViTConfig) -> None:
        super().__init__()
        self.first_patch = int(bool(config.class_token))
        self.pool_kind = config.pool
        self.pool = AttentionPool(config) if config.pool == "attention" else None
        self.norm = nn.LayerNorm(config.dim, eps=config.norm_eps) if config.norm_pooled else None
        width = config.representation_size or config.dim
        self.representation = nn.Linear(config.dim, width) if config.representation_size else None
        self.linear = nn.Linear(width, config.num_classes) if config.num_classes else None

    def forward(self, tokens: KeptTokens) -> Logits:
        """Map tokens to logits, or to the representation when the model has no classes."""
        representation = self.represent(tokens)
        return representation if self.linear is None else self.linear(representation)

    def represent(self, tokens: KeptTokens) -> Representation:
        """Compute the input of the last linear layer."""
        if self.pool is not None:
            pooled = self.pool(tokens)
        elif self.pool_kind == "mean":
            pooled = tokens[:, self.first_patch :].mean(dim=1)
        else:
            pooled = tokens[:, 0]
        if self.norm is not None:
            pooled = self.norm(pooled)
        return pooled if self.representation is None else self.representation(pooled).tanh()

    def pool_weights(self, tokens: KeptTokens) -> PoolWeights:
        """Return how much pooling reads of each token."""
        if self.pool is not None:
            return self.pool.weights(tokens)
        weights = tokens.new_zeros(tokens.shape[:2])
        if self.pool_kind == "mean":
            weights[:, self.first_patch :] = 1 / (tokens.shape[1] - self.first_patch)
        else:
            weights[:, 0] = 1
        return weights


def head_cost(config: ViTConfig) -> Unit:
    """Count pooling, the representation layer and the last linear layer."""
    tokens, dim, width = config.num_tokens, config.dim, config.feature_width
    macs = (dim * width if config.representation_size else 0) + width * config.num_classes
    activations = dim + width if config.pool == "class-token" else tokens * dim
    if config.pool == "attention":
        macs += 2 * tokens * dim * dim + 2 * tokens * dim + 2 * dim * dim + 2 * dim * config.mlp_dim
        activations += 3 * tokens * dim
    return Unit(macs=macs, activations=activations)
