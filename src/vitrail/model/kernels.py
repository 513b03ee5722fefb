"""The fast forms of attention and MLP, and when each is used; all give the same numbers, up to rounding.

| form                                | used when                                    | gain                            |
|-------------------------------------|----------------------------------------------|---------------------------------|
| attention that never stores A       | A is not recorded                            | memory, and time on every device|
| one query, no keys or values        | only the first token is needed (last block)  | almost all of the last block    |
| GELU in its own input's memory      | inference on a CPU, not compiled             | up to a tenth of the MLP        |

Each holds for any number of threads. `docs/log.md` has the measurements, and what did not help.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vitrail.base.products import linear
from vitrail.base.shapes import AttentionMap, Keys, Pooled, Queries, Tokens
from vitrail.model.gelu import Gelu, gelu, gelu_

_HALVES = (torch.bfloat16, torch.float16)


def attend(
    queries: Queries, keys: Keys, values: Keys, bias: AttentionMap | None = None, *, dropout: float = 0.0
) -> Queries:
    """Compute A v, Eq. 7, by torch's fused kernel, which never stores A; `dropout` acts on A.

    On a CPU half precision, with its gradients, takes 1.1 to 11 times as long as float32 (docs/log.md).
    """
    if queries.device.type == "cpu" and queries.dtype in _HALVES and queries.requires_grad:
        bias = None if bias is None else bias.float()
        with torch.autocast("cpu", enabled=False):
            return attend(queries.float(), keys.float(), values.float(), bias, dropout=dropout).to(queries.dtype)
    mixed = F.scaled_dot_product_attention(queries, keys, values, attn_mask=bias, dropout_p=dropout)
    # An exported graph may not rely on the order in which this kernel lays out its result: other runtimes differ.
    return mixed.clone(memory_format=torch.contiguous_format) if torch.compiler.is_exporting() else mixed


def attend_first(
    tokens: Tokens,
    qkv: nn.Linear,
    num_heads: int,
    bias: Callable[[Queries, int], AttentionMap | None],
    *,
    dropout: float = 0.0,
) -> Pooled:
    """Compute [SA_1; ...; SA_k] of the first token without keys or values for the others.

    With one query, q . (x U_k) = (q U_k^T) . x and A (x U_v) = (A x) U_v: the kernels move from N tokens to one.
    The bias of the keys adds the same to every score, which softmax ignores; `bias` adds relative positions.
    """
    dim, heads = tokens.shape[2], (num_heads, -1)
    query_kernel, key_kernel, value_kernel = qkv.weight.split(dim)
    query_bias, _, value_bias = qkv.bias.split(dim)
    queries = linear(tokens[:, 0], query_kernel, query_bias).unflatten(1, heads)  # batch head head_dim
    lifted = (queries.transpose(0, 1) @ key_kernel.unflatten(0, heads)).transpose(0, 1)  # batch head dim
    scores = lifted @ tokens.mT * queries.shape[2] ** -0.5  # batch head token
    position_scores = bias(queries.unsqueeze(2), tokens.shape[1])
    weights = (scores if position_scores is None else scores + position_scores.squeeze(2)).softmax(dim=-1)
    weights = F.dropout(weights, dropout) if dropout else weights
    mixed = (weights @ tokens).transpose(0, 1) @ value_kernel.unflatten(0, heads).mT  # head batch head_dim
    return mixed.transpose(0, 1).flatten(1) + value_bias


def activate(hidden: Tensor, kind: Gelu) -> Tensor:
    """Apply GELU to a buffer that is not used again: in its own memory where no gradient needs it.

    A second buffer of that size costs more than the function itself, because the system must clear its pages.
    """
    plain = hidden.device.type == "cpu" and hidden.dtype in (torch.float32, torch.float64)
    if plain and not torch.is_grad_enabled() and not torch.compiler.is_compiling() and hidden.is_contiguous():
        return gelu_(hidden, kind)
    return gelu(hidden, kind)
