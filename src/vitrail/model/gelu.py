"""GELU, exact and approximated, as fast as a CPU allows (Sec. 3.1)."""

import math
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor

Gelu = Literal["tanh", "erf", "quick"]

# x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) = x sigmoid(x (_LINEAR + _CUBIC x^2)), since 1 + tanh u = 2 sigmoid 2u.
_LINEAR = 2 * math.sqrt(2 / math.pi)
_CUBIC = 0.044715 * _LINEAR
_QUICK = 1.702  # CLIP's sigmoid has the slope of GELU's normal distribution
_CACHED = 2**18  # elements that stay in a core's cache between passes


def gelu(x: Tensor, kind: Gelu) -> Tensor:
    """Apply GELU: `erf` is its definition, `tanh` the approximation that the reference release uses, `quick` CLIP's.

    On a CPU torch's tanh kernel takes three times as long as the same function written with a sigmoid, so that form
    is used there; both round to within 2.4e-7 |x| of the exact value in float32.
    """
    if kind == "erf":
        return F.gelu(x)
    if kind == "quick":
        return F.silu(_QUICK * x) / _QUICK  # x sigmoid(1.702 x), which keeps one buffer for its gradient and not two
    if x.device.type != "cpu" or x.dtype not in (torch.float32, torch.float64):
        return F.gelu(x, approximate="tanh")
    if torch.compiler.is_compiling():
        return x * torch.sigmoid(x * (_LINEAR + _CUBIC * x * x))  # the compiler fuses this into one pass
    return _SigmoidGelu.apply(x)  # type: ignore[no-untyped-call]


class _SigmoidGelu(torch.autograd.Function):
    """The sigmoid form with one buffer; its gradient is torch's own kernel, which needs only x."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor) -> Tensor:
        slope = torch.addcmul(x.new_tensor(_LINEAR), x, x, value=_CUBIC)
        return slope.mul_(x).sigmoid_().mul_(x)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor], output: Tensor) -> None:  # noqa: ARG004  (torch's signature)
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return torch.ops.aten.gelu_backward(gradients[0], x, approximate="tanh")


def gelu_(x: Tensor, kind: Gelu) -> Tensor:
    """Apply GELU in place, without gradients, to a contiguous buffer on the CPU that is not used again."""
    if kind == "erf":
        return torch.ops.aten.gelu_(x)
    for part in x.flatten().split(_CACHED):
        if kind == "quick":
            part.mul_(torch.mul(part, _QUICK).sigmoid_())
            continue
        part.mul_(torch.addcmul(x.new_tensor(_LINEAR), part, part, value=_CUBIC).mul_(part).sigmoid_())
    return x
