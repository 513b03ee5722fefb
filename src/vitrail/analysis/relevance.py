"""What speaks for a class: attention weighted by its gradient (Chefer, Gur and Wolf, 2021, for self-attention).

R = I, then R <- R + A' R from the first block to the last, with A' the mean over heads of relu(dy/dA * A).
Gradients hold the scale of LayerNorms: see `held_scale`.
"""

import torch
from jaxtyping import Int
from torch import Tensor

from vitrail.analysis.cells import HeatMaps
from vitrail.analysis.held_scale import HeldScale
from vitrail.analysis.rollout import HeadMean, mix, on_grid
from vitrail.base.shapes import Images
from vitrail.model.contract import Model

Classes = Int[Tensor, "batch"]

MAP_BYTES = 2**28
"""How much memory the maps of one pass may take; more blocks than fit are seen in further passes."""


def relevance_heat(model: Model, images: Images, classes: Classes) -> HeatMaps:
    """Return how much each patch speaks for a class of each image."""
    depth = model.config.attention_shape[0]
    tokens = (model.config.num_prefix + _patches(model)) ** 2
    flow: HeadMean | None = None
    size = blocks_at_once(len(images) * model.config.attention_shape[1] * tokens)
    for start in range(0, depth, size):
        blocks = range(start, min(start + size, depth))
        weighted, weights = weighted_maps(model, images, classes, blocks)
        for attention in weighted:
            flow = torch.eye(attention.shape[-1]).to(attention).expand_as(attention) if flow is None else flow
            flow = flow + attention @ flow
    assert flow is not None  # noqa: S101 - a model with attention has blocks
    return on_grid(mix(weights, flow), model.config.num_prefix, model.config.grid)


@torch.enable_grad()
def weighted_maps(model: Model, images: Images, classes: Classes, blocks: range) -> tuple[list[HeadMean], torch.Tensor]:
    """Return A' of some blocks, and how much pooling reads of each token."""
    images = images.detach().requires_grad_()  # so that there is a graph where every weight is frozen
    with HeldScale():
        encoded = model.encode(images, attention=list(blocks))
        logits = model.classify(model.represent(encoded.output))
    maps = [encoded.attention[block] for block in blocks]
    slopes = torch.autograd.grad(logits.gather(1, classes[:, None]).sum(), maps)
    weighted = [(slope * attention).relu().mean(dim=1).detach() for slope, attention in zip(slopes, maps, strict=True)]
    return weighted, model.pool_weights(encoded.output).detach()


def blocks_at_once(values: int) -> int:
    """Return how many blocks one pass may show, by the values in A of each: softmax and its slope keep A too."""
    return max(MAP_BYTES // (3 * 4 * values), 1)


def _patches(model: Model) -> int:
    rows, columns = model.config.grid
    return rows * columns
