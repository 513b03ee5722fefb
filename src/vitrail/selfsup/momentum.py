"""A slow copy of what learns: a teacher, or a momentum encoder."""

import copy
import math
from collections.abc import Iterable
from typing import TypeVar

import torch
from torch import Tensor, nn

Network = TypeVar("Network", bound=nn.Module)


def slow_copy(network: Network) -> Network:
    """Return a copy that no gradient reaches, in evaluation mode."""
    return copy.deepcopy(network).requires_grad_(False).eval()


def momentum_at(start: float, done: float) -> float:
    """Return how much of the copy stays in an update: from `start` to 1 by a cosine over the share of steps done.

    m = 1 - (1 - start) (1 + cos(pi done)) / 2
    """
    return 1 - (1 - start) * (1 + math.cos(math.pi * done)) / 2


@torch.no_grad()
def follow(slow: Iterable[Tensor], quick: Iterable[Tensor], momentum: float) -> None:
    """Move the copy towards what learns: slow <- m slow + (1 - m) quick."""
    torch._foreach_lerp_([weight.detach() for weight in slow], [weight.detach() for weight in quick], 1 - momentum)
