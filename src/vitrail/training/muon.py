"""Muon: momentum whose matrices are made orthogonal before they move the weights; for the kernels of encoder blocks.

Not of the paper. Every singular value of an update becomes about 1, so that directions which gradients seldom show
are learned as fast as the others: on little data and few steps a Vision Transformer gets much further (docs/log.md).
All other parameters follow Adam.

On a CPU with 2 to 4 threads (`alone.may_share`) each thread takes its share of the kernels, with all their iterations:
products this small gain little from two cores and lose much where one of them is late (docs/log.md). Where the
processor has instructions for bfloat16, products are computed with them.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from vitrail.base.alone import each_alone, may_share
from vitrail.base.products import product_type

Matrices = Float[Tensor, "matrix row column"]

# Odd polynomials of degree 5, one after the other: of all of its kind, each brings the singular values that are left by
# the one before it nearest to 1, the first those from 0.0026 to 1. The last, times 0.9, brings these to 0.68 .. 1.12,
# the range of the five rounds of one polynomial that Muon was published with, which take longer (docs/log.md).
SCALE = 0.9
COEFFICIENTS = (
    (8.40087, -24.83379, 18.41108),
    (4.07037, -3.03028, 0.57166),
    (3.58509, -2.68461, 0.5323),
    (SCALE * 2.58965, SCALE * -1.918, SCALE * 0.44606),
)

MARGIN = 1.02
"""Divides X in bfloat16, whose roundings lift values above the range of a polynomial, beyond which it grows fast."""


def orthogonalise(matrices: Matrices, precision: torch.dtype = torch.float32) -> Matrices:
    """Replace U S V^T by about 0.9 U V^T, by the iteration X <- a X + (b X X^T + c (X X^T)^2) X.

    It begins with singular values of at most 1, and the nearer the largest is to 1, the more of the small ones it
    reaches: the root of |X X^T|, which is a bound of the largest as |X| is, is nearer to it and costs nothing.
    `precision` is the type of the products.
    """
    tall = matrices.shape[1] > matrices.shape[2]
    x = matrices.mT if tall else matrices
    x = (x / (norms(x) + 1e-7)).to(precision)
    square = x @ x.mT
    bound = norms(square) + 1e-7
    x, square = x / bound.sqrt(), square / bound
    margin = MARGIN if precision == torch.bfloat16 else 1.0
    for number, (a, b, c) in enumerate(COEFFICIENTS):
        square = x @ x.mT if number else square
        factor = torch.baddbmm(square, square, square, beta=b / margin**3, alpha=c / margin**5)
        x = torch.baddbmm(x, factor, x, beta=a / margin)
    return (x.mT if tall else x).to(matrices.dtype)


def norms(matrices: Matrices) -> Float[Tensor, "matrix 1 1"]:
    """Return the root of the sum of squares of each matrix."""
    return matrices.norm(dim=(1, 2), keepdim=True)


@dataclass(frozen=True, kw_only=True, eq=False)
class Kernel:
    """One kernel that is to be moved."""

    weight: Tensor
    gradient: Tensor
    momentum: Tensor
    group: dict[str, Any]

    @property
    def key(self) -> tuple[int, int, int]:
        """What kernels that are moved together have in common: the shape, and the settings."""
        rows, columns = self.weight.shape
        return rows, columns, id(self.group)

    @property
    def work(self) -> int:
        """The arithmetic of an iteration, but for a factor: r c min(r, c) of each of the stacked matrices."""
        rows, columns = self.weight.shape[0] // self.group["stacked"], self.weight.shape[1]
        return int(self.weight.numel()) * min(rows, columns)


class Muon(torch.optim.AdamW):
    """Adam for most parameters; groups of `stacked` matrices get orthogonal updates, each matrix by itself."""

    threads = 1
    """Threads that may share the kernels among themselves."""

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        """Move the orthogonal groups, and leave the others to Adam."""
        kernels = self._kernels()
        if not may_share(self.threads):
            move(kernels)
            return super().step(closure)
        rest = super().step
        *_, result = each_alone(
            self.threads, [*(partial(move, share) for share in deal(kernels, self.threads)), partial(rest, closure)]
        )
        return result

    def _kernels(self) -> list[Kernel]:
        """Take the gradients of the orthogonal groups away, so that Adam skips their parameters."""
        kernels = []
        for group in self.param_groups:
            for weight in group["params"] if group["stacked"] else ():
                if weight.grad is not None:
                    state = self.state[weight]
                    momentum = state["momentum"] if "momentum" in state else torch.zeros_like(weight)
                    state["momentum"] = momentum
                    kernels.append(Kernel(weight=weight, gradient=weight.grad, momentum=momentum, group=group))
                    weight.grad = None
        return kernels


def deal(kernels: list[Kernel], shares: int) -> list[list[Kernel]]:
    """Give each share about the same work: the largest kernels first, each to the share that has the least."""
    dealt: list[list[Kernel]] = [[] for _ in range(shares)]
    loads = [0] * shares
    for kernel in sorted(kernels, key=lambda kernel: -kernel.work):
        least = loads.index(min(loads))
        dealt[least].append(kernel)
        loads[least] += kernel.work
    return dealt


@torch.no_grad()
def move(kernels: list[Kernel]) -> None:
    """Update all kernels of one shape together, with Nesterov's momentum."""
    alike: dict[tuple[int, int, int], list[Kernel]] = {}
    for kernel in kernels:
        alike.setdefault(kernel.key, []).append(kernel)
    for (rows, columns, _), some in alike.items():
        group, weights = some[0].group, [kernel.weight for kernel in some]
        gradients, momenta = [kernel.gradient for kernel in some], [kernel.momentum for kernel in some]
        torch._foreach_lerp_(momenta, gradients, 1 - group["momentum"])
        ahead = torch.stack(gradients).lerp_(torch.stack(momenta), group["momentum"])
        parts = group["stacked"]
        matrices = ahead.reshape(-1, rows // parts, columns)
        updates = orthogonalise(matrices, product_type(matrices)).reshape(-1, rows, columns)
        scale = max(1.0, rows / parts / columns) ** 0.5
        torch._foreach_mul_(weights, 1 - group["lr"] * group["weight_decay"])
        torch._foreach_add_(weights, list(updates.unbind()), alpha=-group["lr"] * scale)
