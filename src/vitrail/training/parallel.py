"""One learner on several ranks: a copy for each (DDP), or a shard for each (FSDP2)."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.nn.parallel import DistributedDataParallel

from vitrail.base.ranks import Ranks
from vitrail.data.loader import Batch
from vitrail.training.learner import Learner


def shard(learner: Learner, ranks: Ranks) -> None:
    """Spread parameters, and with them gradients and optimiser, over the ranks, block by block, in place.

    Call it before the optimiser is made, which needs the shards.
    """
    mesh = init_device_mesh(ranks.device.type, (ranks.world,))
    for block in learner.blocks():
        fully_shard(block, mesh=mesh)
    # Otherwise the outermost weights stay gathered after an evaluation, and hide that others were put in their place.
    fully_shard(learner, mesh=mesh, reshard_after_forward=True)
    # The first module that is called becomes the root, and an evaluation of the model may come before any training.
    learner._get_fsdp_state()._lazy_init()  # type: ignore[operator]


@contextmanager
def gathered(learner: Learner) -> Iterator[Learner]:
    """Yield a learner for an evaluation outside of its own pass, which otherwise gathers the outer weights.

    Blocks gather their own weights in every pass, which therefore needs every rank.
    """
    if isinstance(learner, FSDPModule):
        learner.unshard()
    try:
        yield learner
    finally:
        if isinstance(learner, FSDPModule):
            learner.reshard()


def parallelise(learner: Learner, ranks: Ranks, *, sharded: bool, compiled: bool) -> nn.Module:
    """Return the module that a training step calls; its parameters are the learner's own."""
    if compiled:
        learner.compile()
    if ranks.world == 1 or sharded:
        return learner
    devices = [ranks.device] if ranks.device.type == "cuda" else None
    return DistributedDataParallel(
        learner, device_ids=devices, forward_sync_buffers=False, gradient_as_bucket_view=True
    )


def in_company(batches: Iterable[Batch], model: nn.Module, forwards: int, dummy: Tensor) -> Iterator[Batch]:
    """Yield this rank's batches; where others have one and this rank has none, run the model on a dummy.

    Shards are gathered in every forward pass, which therefore needs every rank.
    """
    passes = 0
    for batch in batches:
        if len(batch.indices):
            yield batch
        else:
            model(dummy)
        passes += 1
    for _ in range(forwards - passes):
        model(dummy)
