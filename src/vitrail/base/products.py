"""Products of matrices on a CPU, by the faster of the two libraries that torch has.

torch computes in float32 with MKL, which on processors of AMD stays with AVX2 even where they have AVX-512: half of
their speed. oneDNN, which torch computes convolutions with, takes what is there (docs/log.md). So there it computes
large products, forward and backward; everywhere else torch's own functions do.
"""

import os
from functools import cache
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from vitrail.base.processor import LIMIT, describe_processor, has_bfloat16

LEAST_WORK = 2**21
"""Multiplications of a product below which a call of oneDNN takes longer than the product."""

Rows = Float[Tensor, "*rows inner"]
Matrix = Float[Tensor, "columns inner"]
Offsets = Float[Tensor, " columns"]
Products = Float[Tensor, "*rows columns"]


@cache
def onednn_is_faster() -> bool:
    """Return whether MKL leaves AVX-512 unused on this processor, and oneDNN does not."""
    processor, limit = describe_processor(), os.environ.get(LIMIT) or "AVX512"
    wide = "avx512f" in processor.get("flags", "").split() and limit.startswith("AVX512")
    libraries = torch.backends.mkl.is_available() and torch.backends.mkldnn.is_available()
    return processor.get("vendor_id") == "AuthenticAMD" and wide and libraries


@cache
def bfloat16_is_faster() -> bool:
    """Return whether the processor multiplies in bfloat16 faster than in float32; to be asked after `settle`."""
    return torch.backends.mkldnn.is_available() and has_bfloat16()


def product_type(matrices: Tensor) -> torch.dtype:
    """Return the type in which products that need few digits are fastest: bfloat16 or the matrices' own."""
    halved = matrices.device.type == "cpu" and matrices.dtype == torch.float32 and bfloat16_is_faster()
    return torch.bfloat16 if halved else matrices.dtype


def linear(x: Rows, weight: Matrix, bias: Offsets | None = None) -> Products:
    """Return x W^T + b."""
    if not _suits(x, weight):
        return F.linear(x, weight, bias)
    if torch.is_grad_enabled() and any(part is not None and part.requires_grad for part in (x, weight, bias)):
        return _Linear.apply(x, weight, bias)  # type: ignore[no-untyped-call]  # torch has no types for it
    return _onednn(x, weight, bias)


class Linear(nn.Linear):
    """A linear layer by the faster library, with the names and initial values of torch's."""

    def forward(self, input: Rows) -> Products:  # noqa: A002  (torch's name)
        """Return x W^T + b."""
        return linear(input, self.weight, self.bias)


def _suits(x: Tensor, weight: Tensor) -> bool:
    """Return whether oneDNN is to compute x W^T; a compiler makes its own choice, and has sizes without a number."""
    return (
        not torch.compiler.is_compiling()
        and x.device.type == "cpu"
        and onednn_is_faster()
        and x.dtype == weight.dtype == torch.float32
        and x.numel() * len(weight) >= LEAST_WORK
        and not torch.is_autocast_enabled("cpu")
    )


def _onednn(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    return torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")


class _Linear(torch.autograd.Function):
    """The layer with its gradients, which are products of the same kind and have gradients too."""

    @staticmethod
    def forward(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        return _onednn(x, weight, bias)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor, Tensor | None], output: Tensor) -> None:  # noqa: ARG004 - torch gives it
        ctx.save_for_backward(*inputs[:2])

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        x, weight = ctx.saved_tensors
        slopes = gradients[0]
        rows = slopes.reshape(-1, slopes.shape[-1])
        for_x, for_weight, for_bias = ctx.needs_input_grad
        return (
            linear(slopes, weight.T) if for_x else None,
            _slopes_of_weight(rows, x.reshape(-1, x.shape[-1])) if for_weight else None,
            rows.sum(0) if for_bias else None,
        )


def _slopes_of_weight(slopes: Tensor, x: Tensor) -> Tensor:
    """Return G^T X; oneDNN copies its left side where it lies transposed, so that is the smaller of the two."""
    return linear(slopes.T, x.T) if slopes.shape[1] <= x.shape[1] else linear(x.T, slopes.T).T.contiguous()
