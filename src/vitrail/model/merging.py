"""Token merging: between attention and MLP of each block, the tokens that are most alike become one.

Bolya et al. 2022, "Token Merging: Your ViT But Faster". Tokens are split into two sets by turns. Each of the first set
proposes to join the one of the second set whose keys, as a mean over heads, have the largest cosine with its own, and
the `count` best proposals are accepted (bipartite soft matching). A merged token is the mean of its patches, and counts
as that many in the softmax of attention: softmax(q k^T / sqrt(D_h) + log s), proportional attention.

Nothing is learned. Tokens before the patches are never merged.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from vitrail.base.errors import ConfigError
from vitrail.base.numbers import MOST_MERGED, check_whole
from vitrail.base.shapes import AttentionMap, KeptTokens, Keys, Queries, Tokens
from vitrail.model.config import ViTConfig
from vitrail.model.family import ModelConfig

TokenSizes = Float[Tensor, "batch token 1"]
"""How many patches each token stands for."""
Metric = Float[Tensor, "batch token width"]


@dataclass(frozen=True, kw_only=True)
class Matching:
    """Which tokens of the first set, those with even numbers, join which of the second, those with odd ones."""

    kept: Int[Tensor, "batch unmerged"]
    """Tokens of the first set that stay alone, in order; numbers inside the set."""
    merged: Int[Tensor, "batch count"]
    """Tokens of the first set that join another, the most alike first."""
    into: Int[Tensor, "batch count"]
    """The token of the second set that each joins."""


def match(metric: Metric, count: int, prefix: int) -> Matching:
    """Let `count` tokens join the one that is most like them; the first `prefix` tokens stay as they are."""
    directions = F.normalize(metric, dim=-1)
    cosines = directions[:, ::2] @ directions[:, 1::2].mT  # batch first second
    rows, columns = (torch.arange(side, device=metric.device) for side in cosines.shape[1:])
    apart = (rows < (prefix + 1) // 2)[:, None] | (columns < prefix // 2)
    likeness, partner = cosines.masked_fill(apart, -torch.inf).max(dim=2)
    order = likeness.topk(likeness.shape[1], dim=1).indices  # a sort that every runtime has
    merged, alone = order[:, :count], order[:, count:]
    kept = alone.topk(alone.shape[1], dim=1, largest=False).values
    return Matching(kept=kept, merged=merged, into=partner.gather(1, merged))


def add_merged(values: Metric, matching: Matching, prefix: int) -> Float[Tensor, "batch fewer width"]:
    """Add the rows of merged tokens to those that they join: what is before the patches, the first set, the second."""
    first, second = values[:, ::2], values[:, 1::2]
    kept, moved = (_rows(first, numbers) for numbers in (matching.kept, matching.merged))
    places = torch.arange(second.shape[1], device=values.device)
    joins = (matching.into[:, None] == places[:, None]).to(values.dtype)  # batch second count
    joined = torch.cat([kept, second + joins @ moved], dim=1)
    front = [number // 2 + number % 2 * kept.shape[1] for number in range(prefix)]
    if front == list(range(prefix)):
        return joined
    return joined[:, front + [place for place in range(joined.shape[1]) if place not in front]]


def _rows(values: Metric, numbers: Int[Tensor, "batch some"]) -> Float[Tensor, "batch some width"]:
    return values.gather(1, numbers.unsqueeze(-1).expand(-1, -1, values.shape[2]))


class Merging:
    """The sizes of the tokens in one pass, from block to block."""

    def __init__(self, count: int, prefix: int) -> None:
        self.count, self.prefix = count, prefix
        self.sizes: TokenSizes | None = None
        self.metric: Metric | None = None

    def bias(self, queries: Queries, keys: int) -> AttentionMap | None:
        """Return log s of each key, for every query; None as long as every token is one patch."""
        if self.sizes is None:
            return None
        return self.sizes.log().mT.unsqueeze(1).expand(-1, queries.shape[1], queries.shape[2], keys)

    def take(self, keys: Keys) -> None:
        """Take the keys of a block, by which its tokens are compared."""
        self.metric = keys.mean(dim=1)

    def merge(self, tokens: Tokens) -> KeptTokens:
        """Merge tokens, at most half of those that may be."""
        count = min(self.count, (tokens.shape[1] - self.prefix) // 2)
        if count < 1 or self.metric is None:
            return tokens
        sizes = tokens.new_ones(*tokens.shape[:2], 1) if self.sizes is None else self.sizes
        matching = match(self.metric, count, self.prefix)
        sums = add_merged(tokens * sizes, matching, self.prefix)
        self.sizes = add_merged(sizes, matching, self.prefix)
        return sums / self.sizes


def check_merging(config: ModelConfig, count: int) -> None:
    """Refuse a model whose tokens cannot be merged: without attention, or with places in its blocks."""
    check_whole("merge_tokens", count, least=0, most=MOST_MERGED)
    if not count:
        return
    if not isinstance(config, ViTConfig) or config.mixer.kind != "attention":
        raise ConfigError(f"the tokens of a {config.noun} of this kind cannot be merged; leave out `merge_tokens`.")
    if config.rotary is not None or config.positions == "relative" or config.position_placement != "input":
        raise ConfigError(
            "the model has positions inside its blocks, where a merged token has no place; leave out `merge_tokens`."
        )
