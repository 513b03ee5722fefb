"""The cost of the parts of a model, for one image; each formula stands beside its module."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks
from torch.utils.flop_counter import FlopCounterMode


@dataclass(frozen=True, kw_only=True)
class Unit:
    """The cost of a part that activation checkpointing treats as one."""

    macs: int
    """Multiply-accumulates of one forward pass as the paper counts them: every token through every block."""
    activations: int
    """Values kept for the backward pass."""
    entry: int = 0
    """Size of its input."""

    def __add__(self, other: "Unit") -> "Unit":
        """Return both as one unit, with the input of the first."""
        return Unit(macs=self.macs + other.macs, activations=self.activations + other.activations, entry=self.entry)


def measure_unit(model: nn.Module, image: Tensor) -> Unit:
    """Count a training pass of a model with torch, as one unit; on device "meta" it takes no memory."""
    activations = 0

    def keep(tensor: Tensor) -> Tensor:
        nonlocal activations
        activations += 0 if isinstance(tensor, nn.Parameter) else tensor.numel()
        return tensor

    with (
        torch.enable_grad(),
        FlopCounterMode(display=False) as counter,
        saved_tensors_hooks(keep, lambda tensor: tensor),
    ):
        model(image)
    return Unit(macs=counter.get_total_flops() // 2, activations=activations, entry=image.numel())
