"""Gradients that take the scale of every LayerNorm as a constant (Ali et al., 2022, "XAI for Transformers").

A LayerNorm divides a token by its own deviation, so that the token's length makes no difference behind it, and its
gradient says so: a token that consists of one thing alone has a gradient of next to nothing along that thing. Where
attention has found the one patch that decides, the gradient of its attention weight would be about 0, and noise would
decide the map. With the scale held, the norm is linear, and the gradient says what the patch brought.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode


class HeldScale(TorchFunctionMode):
    """Within this context the outputs of a network are the same, and its LayerNorms are linear for gradients."""

    def __torch_function__(  # noqa: D105 - the protocol of torch
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        return (held_layer_norm if func is F.layer_norm else func)(*args, **(kwargs or {}))


def held_layer_norm(
    input: Tensor,  # noqa: A002 - the names of torch
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Apply a LayerNorm whose deviation has no gradient."""
    axes = tuple(range(-len(normalized_shape), 0))
    centred = input - input.mean(dim=axes, keepdim=True)
    deviation = (centred.detach().square().mean(dim=axes, keepdim=True) + eps).sqrt()
    normed = centred / deviation
    normed = normed if weight is None else normed * weight
    return normed if bias is None else normed + bias
