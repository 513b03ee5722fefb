"""From tokens to logits: pooling, the representation layer, the last linear layer (Eq. 4, App. D.3)."""

import torch
from torch import nn

from vitrail.base.products import Linear
from vitrail.base.shapes import KeptTokens, Keys, Logits, Pooled, PoolWeights, Queries, Representation
from vitrail.model import kernels
from vitrail.model.attention import attention_map
from vitrail.model.config import ViTConfig
from vitrail.model.merging import TokenSizes
from vitrail.model.mlp import Mlp
from vitrail.model.units import Unit


class AttentionPool(nn.Module):
    """A learned query attends to all tokens, then an MLP with a residual (MAP)."""

    def __init__(self, config: ViTConfig) -> None:
        super().__init__()
        self.num_heads = config.pool_heads or config.num_heads
        self.probe = nn.Parameter(torch.empty(1, config.dim))
        self.query = Linear(config.dim, config.dim)
        self.key_value = Linear(config.dim, 2 * config.dim)
        self.out = Linear(config.dim, config.dim)
        self.norm = nn.LayerNorm(config.dim, eps=config.norm_eps)
        self.mlp = Mlp(config.dim, config.mlp_dim, gelu=config.gelu, dropout=config.dropout)

    def forward(self, tokens: KeptTokens, sizes: TokenSizes | None = None) -> Pooled:
        """Pool a sequence into one vector; a token of several patches counts as that many."""
        query, keys, values = self.project(tokens)
        bias = None if sizes is None else sizes.log().mT.unsqueeze(1).expand(-1, self.num_heads, -1, -1)
        pooled = self.out(kernels.attend(query, keys, values, bias).transpose(1, 2).flatten(2))
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
    """Pool, then tanh(Linear(D -> R)) or CLIP's projection where there is one, then Linear(-> K)."""

    def __init__(self, config: ViTConfig) -> None:
        super().__init__()
        self.num_prefix, self.first_pooled = config.num_prefix, config.first_pooled
        self.pool_kind = config.pool
        self.pool = AttentionPool(config) if config.pool == "attention" else None
        self.norm = nn.LayerNorm(config.dim, eps=config.norm_eps) if config.norm_pooled else None
        width, pooled = config.feature_width, config.pooled_width
        self.projection = Linear(pooled, width, bias=False) if config.projection_size else None
        self.representation = Linear(pooled, width) if config.representation_size else None
        self.linear = Linear(width, config.num_classes) if config.num_classes else None

    def forward(self, tokens: KeptTokens, sizes: TokenSizes | None = None) -> Logits:
        """Map tokens to logits, or to the representation when the model has no classes."""
        representation = self.represent(tokens, sizes)
        return representation if self.linear is None else self.linear(representation)

    def represent(self, tokens: KeptTokens, sizes: TokenSizes | None = None) -> Representation:
        """Compute what the last linear layer sees."""
        pooled = self.pooled(tokens, sizes)
        if self.norm is not None:
            pooled = self.norm(pooled)
        if self.projection is not None:
            return self.projection(pooled)
        return pooled if self.representation is None else self.representation(pooled).tanh()

    def pooled(self, tokens: KeptTokens, sizes: TokenSizes | None = None) -> Representation:
        """Turn the sequence into one vector; `sizes` has the patches of each token, where tokens were merged."""
        match self.pool_kind:
            case "attention":
                assert self.pool is not None  # noqa: S101 - made for this kind
                return self.pool(
                    tokens[:, self.first_pooled :], None if sizes is None else sizes[:, self.first_pooled :]
                )
            case "mean":
                return mean_of(tokens, sizes, self.first_pooled)
            case "class-and-mean":
                return torch.cat([tokens[:, 0], mean_of(tokens, sizes, self.num_prefix)], dim=1)
            case "distilled":  # two heads, one for each token, whose answers are averaged, are one linear layer on both
                return tokens[:, :2].flatten(1)
            case _:
                return tokens[:, 0]

    def pool_weights(self, tokens: KeptTokens) -> PoolWeights:
        """Return how much pooling reads of each token."""
        count, first, prefix = tokens.shape[1], self.first_pooled, self.num_prefix
        match self.pool_kind:
            case "attention":
                assert self.pool is not None  # noqa: S101 - made for this kind
                weights = self.pool.weights(tokens[:, first:])
                return torch.cat([tokens.new_zeros(tokens.shape[0], first), weights], dim=1) if first else weights
            case "mean":
                shares = [0.0] * first + [1 / (count - first)] * (count - first)
            case "class-and-mean":
                shares = [0.5] + [0.0] * (prefix - 1) + [0.5 / (count - prefix)] * (count - prefix)
            case "distilled":
                shares = [0.5] * 2 + [0.0] * (count - 2)
            case _:
                shares = [1.0] + [0.0] * (count - 1)
        return torch.tensor(shares, dtype=tokens.dtype, device=tokens.device).expand(tokens.shape[0], -1)


def mean_of(tokens: KeptTokens, sizes: TokenSizes | None, first: int) -> Pooled:
    """Return the mean of the tokens from one on, over the patches that each stands for."""
    if sizes is None:
        return tokens[:, first:].mean(dim=1)
    return (tokens * sizes)[:, first:].sum(dim=1) / sizes[:, first:].sum(dim=1)


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
