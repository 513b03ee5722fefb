"""Muon: momentum whose matrices are made orthogonal before they move the weights; for the kernels of encoder blocks.

Not of the paper. Every singular value of an update becomes about 1, so that directions which gradients seldom show
are learned as fast as the others: on little data and few steps a Vision Transformer gets much further (docs/log.md).
All other parameters follow Adam.
"""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

Matrices = Float[Tensor, "matrix row column"]

# A quintic whose iteration brings singular values from (0, 1] near 1; it trades exactness for few iterations.
_COEFFICIENTS = (3.4445, -4.7750, 2.0315)
_ITERATIONS = 5


def orthogonalise(matrices: Matrices) -> Matrices:
    """Replace U S V^T by about U V^T, by the iteration X <- a X + (b X X^T + c (X X^T)^2) X."""
    tall = matrices.shape[1] > matrices.shape[2]
    x = matrices.mT if tall else matrices
    x = x / (x.norm(dim=(1, 2), keepdim=True) + 1e-7)
    a, b, c = _COEFFICIENTS
    for _ in range(_ITERATIONS):
        square = x @ x.mT
        x = a * x + torch.baddbmm(square, square, square, beta=b, alpha=c) @ x
    return x.mT if tall else x


class Muon(torch.optim.AdamW):
    """Adam for most parameters; groups of `stacked` matrices get orthogonal updates, each matrix by itself."""

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        """Move the orthogonal groups, and leave the others to Adam."""
        for group in self.param_groups:
            if group["stacked"]:
                self._move(group)
        return super().step(closure)

    def _move(self, group: dict[str, Any]) -> None:
        """Update all kernels of one shape together, with Nesterov's momentum."""
        shapes: dict[tuple[int, ...], list[Tensor]] = {}
        for weight in group["params"]:
            if weight.grad is not None:
                shapes.setdefault(tuple(weight.shape), []).append(weight)
        for (rows, columns), weights in shapes.items():
            gradients = [weight.grad for weight in weights if weight.grad is not None]
            momenta = [self.state[weight].setdefault("momentum", torch.zeros_like(weight)) for weight in weights]
            torch._foreach_lerp_(momenta, gradients, 1 - group["momentum"])
            ahead = torch.stack(gradients).lerp_(torch.stack(momenta), group["momentum"])
            parts = group["stacked"]
            updates = orthogonalise(ahead.reshape(-1, rows // parts, columns)).reshape(-1, rows, columns)
            scale = max(1.0, rows / parts / columns) ** 0.5
            torch._foreach_mul_(weights, 1 - group["lr"] * group["weight_decay"])
            torch._foreach_add_(weights, list(updates.unbind()), alpha=-group["lr"] * scale)
            for weight in weights:
                weight.grad = None  # Adam skips parameters without one
