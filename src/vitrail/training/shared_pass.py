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

from vitrail.base.alone import each_alone, may_share

PIECE = 128
"""Images that a thread passes at once."""
Network = Callable[[Tensor], Tensor]


def pass_in_shares(network: Network, images: Tensor, weights: Sequence[nn.Parameter], *, threads: int) -> Tensor:
    """Return what a network makes of images, each by itself; gradients reach `weights`, all that learn in it.

    Nothing in the network may draw random numbers: which piece draws first is left to chance. With a number of
    threads that do not share, the network sees all images at once.
    """
    if not may_share(threads) or len(images) < 2 * threads:
        return network(images)
    pieces = images.split(min(PIECE, -(-len(images) // threads)))
    if not torch.is_grad_enabled() or not weights:
        return torch.cat(each_alone(threads, [partial(_without_gradients, network, piece) for piece in pieces]))
    return _SharedPass.apply(network, pieces, threads, *weights)  # type: ignore[no-untyped-call]


def _without_gradients(network: Network, piece: Tensor) -> Tensor:
    with torch.no_grad():
        return network(piece)


class _SharedPass(torch.autograd.Function):
    """The outputs of all pieces, side by side; each piece remembers its own pass until the gradient comes."""

    @staticmethod
    def forward(ctx: Any, network: Network, pieces: Sequence[Tensor], threads: int, *weights: nn.Parameter) -> Tensor:
        ctx.outputs = each_alone(threads, [partial(_with_gradients, network, piece) for piece in pieces])
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


def _with_gradients(network: Network, piece: Tensor) -> Tensor:
    with torch.enable_grad():
        return network(piece)


def _total(weight: nn.Parameter, gradients: Sequence[Tensor | None]) -> Tensor | None:
    """Add the gradients of the pieces, in their order; None where the network does not use the weight."""
    some = [gradient for gradient in gradients if gradient is not None]
    if not some:
        return None
    total = torch.empty_like(weight).copy_(some[0])  # with the strides of the weight, as optimisers need it
    for gradient in some[1:]:
        total.add_(gradient)
    return total
