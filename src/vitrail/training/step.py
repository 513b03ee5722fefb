"""One update: micro-batches forward and backward, one norm, one step of the optimiser."""

import math
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Literal, TypeVar

import torch
from torch import Tensor, nn
from torch.distributed.fsdp import FSDPModule
from torch.nn.parallel import DistributedDataParallel

from vitrail.base.alone import each_alone, may_share
from vitrail.base.ranks import Ranks
from vitrail.base.seeds import key
from vitrail.data.loader import Batch
from vitrail.training.muon import Muon
from vitrail.training.optimizers import clip, set_rate
from vitrail.training.shares import in_shares, shares
from vitrail.training.state import TrainState

Precision = Literal["float32", "bfloat16", "float16"]

Result = TypeVar("Result")

SMALL_LEARNER = 2**22
"""Parameters up to which one core alone clips and averages."""
SCALE_GROWTH_STEPS = 2000
"""Good steps after which float16's loss scale doubles."""


@dataclass(frozen=True, kw_only=True)
class StepConfig:
    """Settings of a step beside those of its learner."""

    micro_batch: int
    """Images of one rank that go through the model at once; their gradients add up to the batch's."""
    precision: Precision = "float32"
    """Type of the activations; weights stay float32."""
    clip_norm: float | None = None
    seed: int = 0
    shares: int = 1
    """Threads that each take a share of the images where those are enough; for a learner that draws nothing."""
    threads: int = 1
    """Threads that each take a share of the optimiser's work, whatever the learner draws."""


@dataclass(frozen=True, kw_only=True)
class Step:
    """The result of a step, over all ranks."""

    good: bool
    """Whether loss and gradient were finite, and the weights were updated."""
    overflow: bool
    """Whether only float16's loss scale was too large."""
    images: int
    loss: float
    norm: float
    sums: dict[str, float]


def take_step(
    state: TrainState, parallel: nn.Module, batch: Batch, rate: float, *, steps: int, config: StepConfig, ranks: Ranks
) -> Step:
    """Move the weights once, out of `steps` times; a loss or gradient that is not finite leaves them where they are.

    Dropout and the like depend on the run's seed, the step, the rank and the micro-batch alone.
    """
    progress, device = state.progress, ranks.device.type
    scale = progress.loss_scale if config.precision == "float16" else 1.0
    state.optimizer.zero_grad(set_to_none=True)
    state.learner.before_step(progress.step, steps)
    total = len(batch)
    measured: dict[str, Tensor] = {"loss": torch.zeros((), device=ranks.device)}
    pieces = batch.split(config.micro_batch)
    for number, piece in enumerate(pieces):
        torch.manual_seed(key(config.seed, "step", progress.step, ranks.rank, number))
        part = len(piece) / total
        autocast = torch.autocast(device, getattr(torch, config.precision), enabled=config.precision != "float32")
        if (count := shares(config.shares, len(piece))) > 1:
            with autocast:
                loss, sums = in_shares(state.learner, piece.divide(count), part * scale)
        else:
            with _gradients_shared(parallel, last=number == len(pieces) - 1):
                with autocast:
                    loss, sums = parallel(piece)
                (loss * (part * scale)).backward()
        measured["loss"] += loss.detach() * part * total
        for name, value in sums.items():
            measured[name] = measured.get(name, torch.zeros((), device=ranks.device)) + value
    if scale != 1.0:
        torch._foreach_div_([weight.grad for weight in state.learner.parameters() if weight.grad is not None], scale)
    state.learner.adjust_gradients(progress.step, steps)
    norm = float(_alone(config.threads, state.learner, partial(clip, state.learner, config.clip_norm)))
    totals = ranks.sum(torch.stack([value.double() for value in measured.values()]))
    figures = dict(zip(measured, totals.tolist(), strict=True))
    images = total * ranks.world
    mean_loss = figures.pop("loss") / images
    good = math.isfinite(mean_loss) and math.isfinite(norm)
    if good:
        set_rate(state.optimizer, rate, done=progress.step / steps)
        if isinstance(state.optimizer, Muon):
            state.optimizer.threads = config.threads
        state.optimizer.step()
        state.learner.after_step(progress.step, steps)
        if state.average is not None:
            _alone(config.threads, state.learner, partial(state.average.update, progress.step))
    overflow = _rescale(state, good) if config.precision == "float16" and math.isfinite(mean_loss) else False
    return Step(good=good, overflow=overflow, images=images, loss=mean_loss, norm=norm, sums=figures)


def _alone(threads: int, learner: nn.Module, work: Callable[[], Result]) -> Result:
    """Do work on all parameters in a thread of its own where threads share nothing and the learner is small.

    It takes a millisecond then; two threads would wait for each other at every parameter.
    """
    if not may_share(threads) or sum(weight.numel() for weight in learner.parameters()) > SMALL_LEARNER:
        return work()
    (result,) = each_alone(threads, [work])
    return result


def _gradients_shared(parallel: nn.Module, *, last: bool) -> AbstractContextManager[None]:
    """Make ranks add their gradients only with the last micro-batch."""
    if isinstance(parallel, FSDPModule):
        parallel.set_requires_gradient_sync(last)
    elif isinstance(parallel, DistributedDataParallel) and not last:
        return parallel.no_sync()
    return nullcontext()


def _rescale(state: TrainState, good: bool) -> bool:
    """Halve float16's loss scale after an overflow, double it after many good steps; return whether it overflowed."""
    progress = state.progress
    progress.scale_steps = progress.scale_steps + 1 if good else 0
    if not good and progress.loss_scale > 1:
        progress.loss_scale /= 2
        return True
    if progress.scale_steps == SCALE_GROWTH_STEPS:
        progress.loss_scale, progress.scale_steps = progress.loss_scale * 2, 0
    return False
