"""Polyak averaging: a slow copy of the weights that often answers better (Table 2, factor 0.9999)."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn


class Average:
    """An exponential average of the parameters that learn.

    average <- f average + (1 - f) weights, with f = min(factor, (1 + t) / (10 + t)) at update t: the first updates
    count for more, so that the start is soon forgotten.
    """

    def __init__(self, model: nn.Module, factor: float) -> None:
        self.factor = factor
        self.learning = {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}
        self.shadow: dict[str, Tensor] = {name: parameter.detach().clone() for name, parameter in self.learning.items()}

    @torch.no_grad()
    def update(self, step: int) -> None:
        """Move towards the weights after update `step`, from 0."""
        factor = min(self.factor, (1 + step) / (10 + step))
        weights = [parameter.detach() for parameter in self.learning.values()]
        torch._foreach_lerp_(list(self.shadow.values()), weights, 1 - factor)

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Give the model the averaged weights inside the block; its own are restored to the last bit."""
        weights = [parameter.detach() for parameter in self.learning.values()]
        own = [weight.clone() for weight in weights]
        _copy(weights, list(self.shadow.values()))
        try:
            yield
        finally:
            _copy(weights, own)


def _copy(targets: list[Tensor], sources: list[Tensor]) -> None:
    """Copy one by one: shards have no fused copy."""
    with torch.no_grad():
        for target, source in zip(targets, sources, strict=True):
            target.copy_(source)
