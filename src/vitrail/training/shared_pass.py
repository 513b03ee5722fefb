"""A pass through a network in pieces, which threads take by turns: for learners that compare a whole batch.

What such a learner computes behind its network needs all images at once (negatives, statistics of a batch), so its
step cannot be cut as `shares.in_shares` cuts others. The network itself sees each image alone: its pass is cut here,
forward and backward, and everything else has the whole batch. Results are the same up to the order in which gradients
are added. It is as fast on a quiet machine, and 1.6 times as fast where others use a core too (docs/log.md).
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from vitrail.base.alone import each_alone
from vitrail.training.shares import laid_out_like, shares

PIECE = 128
"""Images that a thread passes at once."""
Network = Callable[[Tensor], Tensor]


def pass_in_shares(network: Network, images: Tensor, weights: Sequence[nn.Parameter], *, threads: int) -> Tensor:
    """Return what a network makes of images, each by itself; gradients reach `weights`, all that learn in it.

    Nothing in the network may draw random numbers: which piece draws first is left to chance. Where threads do not
    share (`shares.shares`), the network sees all images at once.
    """
    if shares(threads, len(images)) == 1:
        return network(images)
    pieces = images.split(min(PIECE, -(-len(images) // threads)))
    if not torch.is_grad_enabled() or not weights:
        return torch.cat(_pass(network, pieces, threads, learns=False))
    return _SharedPass.apply(network, pieces, threads, *weights)  # type: ignore[no-untyped-call]  # torch does not type it


def _pass(network: Network, pieces: Sequence[Tensor], threads: int, *, learns: bool) -> list[Tensor]:
    def one(piece: Tensor) -> Tensor:
        with torch.set_grad_enabled(learns):  # each thread has a setting of its own
            return network(piece)

    return each_alone(threads, [partial(one, piece) for piece in pieces])


class _SharedPass(torch.autograd.Function):
    """The outputs of all pieces, side by side; each piece remembers its own pass until the gradient comes."""

    @staticmethod
    def forward(ctx: Any, network: Network, pieces: Sequence[Tensor], threads: int, *weights: nn.Parameter) -> Tensor:
        ctx.outputs = _pass(network, pieces, threads, learns=True)
        ctx.weights, ctx.threads = weights, threads
        return torch.cat([output.detach() for output in ctx.outputs])

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        outputs, ctx.outputs = ctx.outputs, None
        parts = gradients[0].split([len(output) for output in outputs])
        tasks = [
            partial(torch.autograd.grad, output, ctx.weights, part, allow_unused=True)
            for output, part in zip(outputs, parts, strict=True)
        ]
        by_weight = zip(*each_alone(ctx.threads, tasks), strict=True)
        return (None, None, None, *map(_total, ctx.weights, by_weight))


def _total(weight: nn.Parameter, gradients: Sequence[Tensor | None]) -> Tensor | None:
    """Add the gradients of the pieces, in their order; None where the network does not use the weight."""
    some = [gradient for gradient in gradients if gradient is not None]
    if not some:
        return None
    total = laid_out_like(weight, some[0])
    for gradient in some[1:]:
        total.add_(gradient)
    return total
