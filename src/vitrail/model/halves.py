"""Matrix products in halves, one for each of two cores: inference on a small CPU.

A BLAS that shares one product of a few hundred rows between two threads leaves part of both idle; two products of
half the size, one for each thread, run 5 to 25% faster. An encoder block splits without a copy: half of the heads
and half of the hidden units each give a term of the output, and the terms are added. The same numbers come out, up
to the order of that sum (1e-6).
"""

import torch
import torch.nn.functional as F
from torch import nn

from vitrail.base.shapes import Tokens
from vitrail.model.gelu import Gelu, gelu, gelu_

FEW_ROWS = 512
"""Tokens in a batch up to which all is faster in halves; above, only an MLP that is not compiled (docs/log.md)."""


def halves_pay(tokens: Tokens, *, even: int, most_rows: int | None = None) -> bool:
    """Tell whether halves are faster: inference in float32 on a CPU with two threads, and an even number to share."""
    return (
        not torch.is_grad_enabled()
        and not torch.compiler.is_exporting()
        and tokens.device.type == "cpu"
        and tokens.dtype == torch.float32
        and even % 2 == 0
        and _two_threads()
        and (most_rows is None or tokens.shape[0] * tokens.shape[1] <= most_rows)
    )


def _two_threads() -> bool:
    return torch.get_num_threads() == 2


# What torch.compiler.assume_constant_result does, which imports the whole compiler first: as long as torch itself.
_two_threads._dynamo_marked_constant = True  # type: ignore[attr-defined]


def mlp_in_halves(tokens: Tokens, hidden: nn.Linear, out: nn.Linear, kind: Gelu) -> Tokens:
    """Compute GELU(z W_1 + b_1) W_2 + b_2 with half of the hidden units on each core."""
    rows = tokens.flatten(0, 1).expand(2, -1, -1)
    units = torch.baddbmm(hidden.bias.view(2, 1, -1), rows, hidden.weight.unflatten(0, (2, -1)).mT)
    units = gelu(units, kind) if torch.compiler.is_compiling() else gelu_(units, kind)
    terms = units @ out.weight.unflatten(1, (2, -1)).permute(1, 2, 0)
    return terms[0].add_(terms[1]).add_(out.bias).view_as(tokens)


def attention_in_halves(tokens: Tokens, qkv: nn.Linear, out: nn.Linear, num_heads: int) -> Tokens:
    """Compute MSA(z), Eq. 5-8, with half of the heads on each core."""
    batch, length, dim = tokens.shape
    rows = tokens.flatten(0, 1).expand(6, -1, -1)
    projected = torch.baddbmm(qkv.bias.view(6, 1, -1), rows, qkv.weight.unflatten(0, (6, -1)).mT)
    queries, keys, values = projected.view(3, 2 * batch, length, num_heads // 2, -1).transpose(2, 3)
    mixed = F.scaled_dot_product_attention(queries, keys, values)  # half*batch head token head_dim
    mixed = mixed.transpose(1, 2).reshape(2, batch * length, dim // 2)
    terms = mixed @ out.weight.unflatten(1, (2, -1)).permute(1, 2, 0)
    return terms[0].add_(terms[1]).add_(out.bias).view_as(tokens)
