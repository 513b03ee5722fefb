"""A batch in shares, one for each thread: training on a CPU with few cores.

Threads that share every product wait for each other after each of them; threads with images of their own meet only when
their gradients are added. The results are the same up to the order of that sum. It is about as fast on a quiet
machine and 1.4 to 1.8 times as fast where others use the cores too (docs/log.md). With many threads, shares of the
images would be too small for their products and the gradients too many to add, so products are shared as usual.
"""

from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor, nn

from vitrail.base.alone import each_alone, may_share
from vitrail.data.batch import Batch
from vitrail.training.learner import Learner

FEWEST_IMAGES = 8
"""Images of a share below which its products are too small."""


def shares(threads: int, images: int) -> int:
    """Return into how many shares a batch is cut: one for each of 2 to 4 threads if each gets 8 images, else one."""
    return threads if may_share(threads) and images >= FEWEST_IMAGES * threads else 1


def in_shares(learner: Learner, parts: Sequence[Batch], factor: float) -> tuple[Tensor, dict[str, Tensor]]:
    """Add the gradient of the mean loss times a factor, as `backward` would; return the loss, and the sums.

    Nothing in the learner may draw random numbers: which share draws first is left to chance.
    """
    images = sum(map(len, parts))
    learning = [weight for weight in learner.parameters() if weight.requires_grad]
    tasks = [partial(_gradients, learner, part, learning, factor * len(part) / images) for part in parts]
    results = each_alone(len(parts), tasks)
    for gradients, _, _ in results:
        _add(learning, gradients, len(parts))
    means = [loss * (len(part) / images) for part, (_, loss, _) in zip(parts, results, strict=True)]
    sums = {name: torch.stack([some[name] for _, _, some in results]).sum(0) for name in results[0][2]}
    return torch.stack(means).sum(0), sums


def laid_out_like(weight: Tensor, gradient: Tensor) -> Tensor:
    """Return a gradient with the strides of its weight.

    `backward` guarantees this and `torch.autograd.grad` does not: the gradient of a linear kernel comes transposed, and
    fused optimisers, which walk through both memories side by side, would then move the wrong weights.
    """
    return gradient if gradient.stride() == weight.stride() else torch.empty_like(weight).copy_(gradient)


def _gradients(
    learner: Learner, part: Batch, learning: list[nn.Parameter], factor: float
) -> tuple[tuple[Tensor | None, ...], Tensor, dict[str, Tensor]]:
    loss, sums = learner(part)
    with torch.autocast("cpu", enabled=False):  # gradients have the types of what they are gradients of
        gradients = torch.autograd.grad(loss * factor, learning, allow_unused=True)
    laid_out = (
        gradient if gradient is None else laid_out_like(weight, gradient)
        for weight, gradient in zip(learning, gradients, strict=True)
    )
    return tuple(laid_out), loss.detach(), sums


def _add(weights: list[nn.Parameter], gradients: Sequence[Tensor | None], threads: int) -> None:
    """Add gradients to those that weights have: in one call and on one core, since each of them takes no time."""
    sums, summands = [], []
    for weight, gradient in zip(weights, gradients, strict=True):
        if weight.grad is None:
            weight.grad = gradient
        elif gradient is not None:
            sums.append(weight.grad)
            summands.append(gradient)
    if sums:
        each_alone(threads, [partial(torch._foreach_add_, sums, summands)])
