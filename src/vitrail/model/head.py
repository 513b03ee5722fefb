"""From tokens to logits: pooling, the representation layer, the last linear layer (Eq. 4, App. D.3)."""

import torch
from torch import nn

from vitrail.base.shapes import KeptTokens, Logits, Pooled, Representation
from vitrail.model import kernels
from vitrail.model.config import ViTConfig
from vitrail.model.mlp import Mlp
from vitrail.model.units import Unit


class AttentionPool(nn.Module):
    """A learned query attends to all tokens, then an MLP with a residual (MAP)."""

    def __init__(self, config: ViTConfig) -> None:
        super().__init__()
        self.num_heads = config.pool_heads or config.num_heads
        self.probe = nn.Parameter(torch.empty(1, config.dim))
        self.query = nn.Linear(config.dim, config.dim)
        self.key_value = nn.Linear(config.dim, 2 * config.dim)
        self.out = nn.Linear(config.dim, config.dim)
        self.norm = nn.LayerNorm(config.dim, eps=config.norm_eps)
        self.mlp = Mlp(config.dim, config.mlp_dim, gelu=config.gelu, dropout=config.dropout)

    def forward(self, tokens: KeptTokens) -> Pooled:
        """Pool a sequence into one vector."""
        query = self.query(self.probe).expand(tokens.shape[0], 1, -1)
        query = query.unflatten(2, (self.num_heads, -1)).transpose(1, 2)
        keys, values = self.key_value(tokens).unflatten(2, (2, self.num_heads, -1)).permute(2, 0, 3, 1, 4)
        pooled = self.out(kernels.attend(query, keys, values).transpose(1, 2).flatten(2))
        return (pooled + self.mlp(self.norm(pooled))).squeeze(1)


class Head(nn.Module):
    """Pool, then tanh(Linear(D -> R)) or CLIP's projection where there is one, then Linear(-> K)."""

    def __init__(self, config: ViTConfig) -> None:
        super().__init__()
        self.num_prefix, self.first_pooled = config.num_prefix, config.first_pooled
        self.pool_kind = config.pool
        self.pool = AttentionPool(config) if config.pool == "attention" else None
        self.norm = nn.LayerNorm(config.dim, eps=config.norm_eps) if config.norm_pooled else None
        width, pooled = config.feature_width, config.pooled_width
        self.projection = nn.Linear(pooled, width, bias=False) if config.projection_size else None
        self.representation = nn.Linear(pooled, width) if config.representation_size else None
        self.linear = nn.Linear(width, config.num_classes) if config.num_classes else None

    def forward(self, tokens: KeptTokens) -> Logits:
        """Map tokens to logits, or to the representation when the model has no classes."""
        representation = self.represent(tokens)
        return representation if self.linear is None else self.linear(representation)

    def represent(self, tokens: KeptTokens) -> Representation:
        """Compute what the last linear layer sees."""
        pooled = self.pooled(tokens)
        if self.norm is not None:
            pooled = self.norm(pooled)
        if self.projection is not None:
            return self.projection(pooled)
        return pooled if self.representation is None else self.representation(pooled).tanh()

    def pooled(self, tokens: KeptTokens) -> Representation:
        """Turn the sequence into one vector."""
        match self.pool_kind:
            case "attention":
                assert self.pool is not None  # noqa: S101 - made for this kind
                return self.pool(tokens[:, self.first_pooled :])
            case "mean":
                return tokens[:, self.first_pooled :].mean(dim=1)
            case "class-and-mean":
                return torch.cat([tokens[:, 0], tokens[:, self.num_prefix :].mean(dim=1)], dim=1)
            case "distilled":  # two heads, one for each token, whose answers are averaged, are one linear layer on both
                return tokens[:, :2].flatten(1)
            case _:
                return tokens[:, 0]


def head_cost(config: ViTConfig) -> Unit:
    """Count pooling, the representation layer and the last linear layer."""
    tokens, dim, width = config.num_tokens - config.first_pooled, config.dim, config.feature_width
    inner = bool(config.representation_size or config.projection_size)
    macs = config.pooled_width * width * inner + width * config.num_classes
    activations = dim + width if config.pool == "class-token" else config.num_tokens * dim
    if config.pool == "attention":
        macs += 2 * tokens * dim * dim + 2 * tokens * dim + 2 * dim * dim + 2 * dim * config.mlp_dim
        activations += 3 * tokens * dim
    return Unit(macs=macs, activations=activations)
