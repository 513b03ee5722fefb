"""One model on several ranks: a copy for each (DDP), or a shard for each (FSDP2)."""

import torch
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

from vitrail.base.ranks import Ranks


def shard(model: nn.Module, ranks: Ranks) -> None:
    """Spread parameters, and with them gradients and optimiser, over the ranks, block by block, in place.

    Must come before the optimiser is made, which is to see shards.
    """
    mesh = init_device_mesh(ranks.device.type, (ranks.world,))
    encoder = getattr(model, "encoder", None)
    for unit in encoder.blocks if encoder is not None else getattr(model, "stages", ()):
        fully_shard(unit, mesh=mesh)
    fully_shard(model, mesh=mesh)


def parallelise(model: nn.Module, ranks: Ranks, *, sharded: bool, compiled: bool) -> nn.Module:
    """Return the module that a training step calls; its parameters are the model's own."""
    parallel = model
    if ranks.world > 1 and not sharded:
        devices = [ranks.device] if ranks.device.type == "cuda" else None
        parallel = DistributedDataParallel(
            model, device_ids=devices, forward_sync_buffers=False, gradient_as_bucket_view=True
        )
    return torch.compile(parallel) if compiled else parallel  # type: ignore[return-value]
