"""Two halves of a batch, one for each of two cores: training on a small CPU.

Two threads that share every product wait for each other after each of them; two halves of the images, each with a core
of its own, meet only when their gradients are added. The same numbers come out, up to the order of that sum. Measured
with two threads (docs/log.md), and used there only.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from threading import Barrier

import torch
from torch import Tensor, nn

from vitrail.data.loader import Batch
from vitrail.train.learner import Learner

CORES = 2


def on_two_cores(learner: Learner, halves: Sequence[Batch], factor: float) -> tuple[Tensor, dict[str, Tensor]]:
    """Add the gradient of the mean loss times a factor, as `backward` would; return the loss, and the sums.

    Nothing in the learner may draw random numbers: which half draws first is left to chance.
    """
    images = sum(len(half) for half in halves)
    learning = [weight for weight in learner.parameters() if weight.requires_grad]
    tasks = [_pool().submit(_gradients, learner, half, learning, factor * len(half) / images) for half in halves]
    done = [task.result() for task in tasks]
    for gradients, _, _ in done:
        for weight, gradient in zip(learning, gradients, strict=True):
            if gradient is not None:
                weight.grad = laid_out_like(weight, gradient) if weight.grad is None else weight.grad.add_(gradient)
    means = [loss * (len(half) / images) for half, (_, loss, _) in zip(halves, done, strict=True)]
    sums = {name: torch.stack([found[name] for _, _, found in done]).sum(0) for name in done[0][2]}
    return torch.stack(means).sum(0), sums


def laid_out_like(weight: Tensor, gradient: Tensor) -> Tensor:
    """Return a gradient with the strides of its weight.

    `backward` guarantees this and `torch.autograd.grad` does not: the gradient of a linear kernel comes transposed, and
    fused optimisers, which walk through both memories side by side, would then move the wrong weights.
    """
    return gradient if gradient.stride() == weight.stride() else torch.empty_like(weight).copy_(gradient)


def _gradients(
    learner: Learner, half: Batch, learning: list[nn.Parameter], factor: float
) -> tuple[tuple[Tensor | None, ...], Tensor, dict[str, Tensor]]:
    loss, sums = learner(half)
    gradients = torch.autograd.grad(loss * factor, learning, allow_unused=True)
    return gradients, loss.detach(), sums


def _compute_alone() -> None:
    """Leave other cores alone in this thread; its first question would otherwise set what all threads start with."""
    torch.get_num_threads()
    torch.set_num_threads(1)


@cache
def _pool() -> ThreadPoolExecutor:
    """Start two threads that compute alone; they stay as long as the process."""
    before, ready = torch.get_num_threads(), Barrier(CORES)
    pool = ThreadPoolExecutor(CORES, "vitrail-core", initializer=_compute_alone)
    for started in [pool.submit(ready.wait) for _ in range(CORES)]:
        started.result()
    torch.set_num_threads(before)  # what a thread sets, later threads would start with
    return pool
