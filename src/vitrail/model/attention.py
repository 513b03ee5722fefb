"""Multi-head self-attention (Eq. 5-8), explicit and fused, and relative positions (App. D.4)."""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from vitrail.base.products import Linear
from vitrail.base.shapes import AttentionMap, KeptTokens, Keys, Queries, Tokens
from vitrail.model import kernels
from vitrail.model.config import ViTConfig
from vitrail.model.merging import Merging
from vitrail.model.patches import Size
from vitrail.model.rotary import Rotation, rotate
from vitrail.model.trace import MapRecorder
from vitrail.model.units import Unit


def attention_map(queries: Queries, keys: Keys, bias: AttentionMap | None = None) -> AttentionMap:
    """Compute A = softmax(q k^T / sqrt(D_h) + bias), Eq. 6, with every weight in memory."""
    scores = queries @ keys.mT * queries.shape[-1] ** -0.5
    return (scores if bias is None else scores + bias).softmax(dim=-1)


def attend_with_maps(
    queries: Queries,
    keys: Keys,
    values: Keys,
    bias: AttentionMap | None = None,
    *,
    heads: list[int],
    dropout: float = 0.0,
    first_only: bool = False,
) -> tuple[Float[Tensor, "batch head kept head_dim"], Float[Tensor, "batch chosen query key"]]:
    """Compute A v with A of `heads` in memory, and return both; the other heads go through the fused kernel.

    The product reads this A, so gradients reach it. With `first_only` A is still complete, and only its first row is
    used.
    """
    others = [head for head in range(queries.shape[1]) if head not in heads]
    weights = attention_map(queries[:, heads], keys[:, heads], None if bias is None else bias[:, heads])
    rows = 1 if first_only else queries.shape[2]
    first_rows = weights[:, :, :rows]
    mixed = (F.dropout(first_rows, dropout) if dropout else first_rows) @ values[:, heads]
    if others:
        rest = None if bias is None else bias[:, others, :rows]
        mixed_others = kernels.attend(
            queries[:, others, :rows], keys[:, others], values[:, others], rest, dropout=dropout
        )
        mixed = torch.cat([mixed, mixed_others], dim=1)
    order = heads + others
    return mixed[:, sorted(range(len(order)), key=order.__getitem__)], weights


def relative_bias(queries: Queries, table: Float[Tensor, "offset dim"], keys: int) -> AttentionMap:
    """Score each query against the embedding of its offset p_q - p_k to every key (App. D.4).

    The offset embeddings are keys for the content query, split into heads and scaled like any key. The queries are
    the first tokens of the sequence, all of them or fewer.
    """
    num_heads, num_queries, head_dim = queries.shape[1:]
    offset_keys = table.unflatten(1, (num_heads, head_dim))
    scores = torch.einsum("bhqd,ohd->bhqo", queries * head_dim**-0.5, offset_keys)
    positions = torch.arange(keys, device=queries.device)
    index = positions[:num_queries, None] - positions + len(table) // 2  # query key
    return scores.gather(3, index.expand(*scores.shape[:2], -1, -1))


class SelfAttention(nn.Module):
    """MSA(z) = [SA_1(z); ...; SA_k(z)] U_msa, with the rows of `qkv` in the order q, k, v, heads inside each."""

    def __init__(
        self,
        dim: int,
        num_heads: int,
        *,
        dropout: float = 0.0,
        attention_dropout: float = 0.0,
        relative_tokens: int | None = None,
    ) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.attention_dropout = attention_dropout
        self.qkv = Linear(dim, 3 * dim)
        self.out = Linear(dim, dim)
        self.dropout = nn.Dropout(dropout)
        self.offsets = None if relative_tokens is None else nn.Parameter(torch.empty(2 * relative_tokens - 1, dim))

    def forward(
        self,
        tokens: Tokens,
        *,
        first_only: bool = False,
        maps: MapRecorder | None = None,
        rotation: Rotation | None = None,
        grid: Size | None = None,  # noqa: ARG002 - for mixers on a grid
        merging: Merging | None = None,
    ) -> KeptTokens:
        """Let every token attend to every token, or only the first one; `maps` asks for A of some heads."""
        score_bias = self.bias if merging is None else merging.bias
        if first_only and maps is None and rotation is None:  # one query needs neither keys nor values
            first = kernels.attend_first(tokens, self.qkv, self.num_heads, score_bias, dropout=self.map_dropout)
            return self.dropout(self.out(first)).unsqueeze(1)
        queries, keys, values = self.project(tokens)  # Eq. 5
        if rotation is not None:
            queries, keys = rotate(queries, rotation), rotate(keys, rotation)
            queries = queries[:, :, :1] if first_only and maps is None else queries
        bias = score_bias(queries, keys.shape[2])
        if merging is not None:
            merging.take(keys)
        if maps is None:
            mixed = kernels.attend(queries, keys, values, bias, dropout=self.map_dropout)  # Eq. 6 and 7
        else:
            mixed, weights = attend_with_maps(
                queries, keys, values, bias, heads=maps.heads, dropout=self.map_dropout, first_only=first_only
            )
            maps.take(weights)
        return self.dropout(self.out(mixed.transpose(1, 2).flatten(2)))  # Eq. 8

    def project(self, tokens: Tokens) -> tuple[Queries, Keys, Keys]:
        """Compute [q, k, v] = z U_qkv, Eq. 5, in one product and without a copy; their gradients need one copy only."""
        queries, keys, values = self.qkv(tokens).unflatten(2, (3, self.num_heads, -1)).unbind(2)
        return queries.transpose(1, 2), keys.transpose(1, 2), values.transpose(1, 2)

    def bias(self, queries: Queries, keys: int) -> AttentionMap | None:
        """Compute the scores that relative positions add."""
        return None if self.offsets is None else relative_bias(queries, self.offsets, keys)

    @property
    def map_dropout(self) -> float:
        """The probability of dropping an attention weight now."""
        return self.attention_dropout if self.training else 0.0


def attention_cost(config: ViTConfig, *, first_only: bool = False) -> Unit:
    """Count one attention layer; with `first_only`, only the class token is a query, but all products are counted."""
    tokens, dim, heads = config.num_tokens, config.dim, config.num_heads
    wide, offsets = tokens * dim, 2 * tokens - 1
    relative, dropped = config.positions == "relative", config.attention_dropout > 0
    macs = 4 * wide * dim + 2 * wide * tokens + (wide * offsets if relative else 0)
    if first_only and config.rotary is not None:  # the input, q, k and v, and q and k turned
        return Unit(macs=macs, activations=6 * wide)
    if first_only:  # the input, the lifted query and what it mixed, and the weights before and after softmax
        activations = wide + 2 * heads * tokens + 2 * heads * dim
        activations += 2 * heads * tokens if dropped else 0
        activations += heads * offsets + dim if relative else 0
        return Unit(macs=macs, activations=activations)
    activations = 5 * wide + tokens * heads  # the input, q, k, v, the output's input, one sum for each query
    activations += 3 * wide if config.rotary is not None else 0  # q and k turned, and the output in their order
    if relative or dropped:  # torch's fused kernel supports neither: A is kept
        activations += heads * tokens * tokens - heads * tokens
    activations += 2 * heads * tokens * tokens if dropped else 0
    activations += heads * tokens * offsets + wide if relative else 0
    return Unit(macs=macs, activations=activations + (wide if config.dropout else 0))
