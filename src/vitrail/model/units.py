"""What the parts of a model cost, one image at a time; each formula stands beside the module that it is about."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks
from torch.utils.flop_counter import FlopCounterMode


@dataclass(frozen=True, kw_only=True)
class Unit:
    """The cost of a part that activation checkpointing would treat as one."""

    macs: int
    """Multiply-accumulates of one forward pass as the paper counts them: every token through every block."""
    kept: int
    """Values kept for the backward pass."""
    entry: int = 0
    """Size of its input."""

    def __add__(self, other: "Unit") -> "Unit":
        """Return the two as one, which begins where the first does."""
        return Unit(macs=self.macs + other.macs, kept=self.kept + other.kept, entry=self.entry)


def counted(model: nn.Module, image: Tensor) -> Unit:
    """Let torch count a training pass of a model without memory, as one unit."""
    kept = 0

    def keep(tensor: Tensor) -> Tensor:
        nonlocal kept
        kept += 0 if isinstance(tensor, nn.Parameter) else tensor.numel()
        return tensor

    with (
        torch.enable_grad(),
        FlopCounterMode(display=False) as counter,
        saved_tensors_hooks(keep, lambda tensor: tensor),
    ):
        model(image)
    return Unit(macs=counter.get_total_flops() // 2, kept=kept, entry=image.numel())
