"""Where attention goes: one block's, or all blocks multiplied together (App. D.8)."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from vitrail.analysis.cells import HeatMaps
from vitrail.base.shapes import Images, PoolWeights
from vitrail.model.contract import Model
from vitrail.model.patches import Size
from vitrail.model.trace import Selection

HeadMean = Float[Tensor, "batch query key"]
"""A, as a mean over heads."""


@torch.inference_mode()
def attention_heat(model: Model, images: Images, *, block: int = -1, head: int | None = None) -> HeatMaps:
    """Return what the pooled token looks at in one block, through one head or the mean over all heads."""
    heads: Selection = "all" if head is None else [head]
    encoded = model.encode(images, attention=[block], heads=heads, reduce=lambda weights: weights.mean(dim=1))
    (attention,) = encoded.attention.values()
    return on_grid(mix(model.pool_weights(encoded.output), attention), model.config.num_prefix, model.config.grid)


@torch.inference_mode()
def rollout_heat(model: Model, images: Images) -> HeatMaps:
    """Return how much of each patch reaches the pooled token through all blocks."""
    encoded = model.encode(images, attention="all", reduce=lambda weights: weights.mean(dim=1))
    flow = rollout([encoded.attention[block] for block in sorted(encoded.attention)])
    return on_grid(mix(model.pool_weights(encoded.output), flow), model.config.num_prefix, model.config.grid)


def rollout(maps: Sequence[HeadMean]) -> HeadMean:
    """Multiply (A + I) / 2 from the first block to the last: A mixes tokens, I is the residual beside it.

    Every row of the result sums to 1. It shows where information may flow, for no class in particular.
    """
    identity = torch.eye(maps[0].shape[-1], dtype=maps[0].dtype, device=maps[0].device)
    flow = identity.expand_as(maps[0])
    for attention in maps:
        flow = (attention + identity) / 2 @ flow
    return flow


def mix(weights: PoolWeights, rows: Float[Tensor, "batch token key"]) -> Float[Tensor, "batch key"]:
    """Return the row of the pooled token: the class token's own, the mean of the patches', or as attention pools."""
    return torch.einsum("bt,btk->bk", weights, rows)


def on_grid(relevance: Float[Tensor, "batch token"], prefix: int, grid: Size) -> HeatMaps:
    """Leave out the tokens before the patches, and put those of the patches where they were cut."""
    return relevance[:, prefix:].unflatten(1, grid)
