"""One model on several ranks: a copy for each (DDP), or a shard for each (FSDP2)."""

from collections.abc import Iterable, Iterator

import torch
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

from vitrail.base.ranks import Ranks
from vitrail.data.loader import Batch
from vitrail.model.contract import Model


def shard(model: Model, ranks: Ranks) -> None:
    """Spread parameters, and with them gradients and optimiser, over the ranks, block by block, in place.

    Must come before the optimiser is made, which is to see shards.
    """
    mesh = init_device_mesh(ranks.device.type, (ranks.world,))
    for layer in model.layers():
        if layer.block is not None:
            fully_shard(layer.block, mesh=mesh)
    # Otherwise the outermost weights stay gathered after an evaluation, and hide that others were put in their place.
    fully_shard(model, mesh=mesh, reshard_after_forward=True)


def parallelise(model: nn.Module, ranks: Ranks, *, sharded: bool, compiled: bool) -> nn.Module:
    """Return the module that a training step calls; its parameters are the model's own."""
    parallel = model
    if ranks.world > 1 and not sharded:
        devices = [ranks.device] if ranks.device.type == "cuda" else None
        parallel = DistributedDataParallel(
            model, device_ids=devices, forward_sync_buffers=False, gradient_as_bucket_view=True
        )
    return torch.compile(parallel) if compiled else parallel  # type: ignore[return-value]


def in_company(batches: Iterable[Batch], model: nn.Module, forwards: int, dummy: Tensor) -> Iterator[Batch]:
    """Yield this rank's batches; where others have one and this rank has none, let the model run on a dummy.

    Shards are gathered in every forward pass, which therefore needs every rank.
    """
    done = 0
    for batch in batches:
        if len(batch.indices):
            yield batch
        else:
            model(dummy)
        done += 1
    for _ in range(forwards - done):
        model(dummy)
