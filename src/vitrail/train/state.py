"""Everything that one step hands to the next, as named tensors and a few numbers.

A run is a function of its config and this state: who has both goes on exactly as if nothing had happened. Randomness
is not here, since it depends on the step alone (`base/seeds.py`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed.tensor import DTensor, distribute_tensor
from torch.optim import Optimizer

from vitrail.base.errors import CheckpointError
from vitrail.train.averaging import Average


@dataclass(kw_only=True)
class Progress:
    """How far a run is; all of it is stored in checkpoints as JSON."""

    step: int = 0
    """Updates done, or passed over."""
    bad_steps: list[int] = field(default_factory=list)
    """Steps whose loss was not finite, and which were passed over."""
    loss_scale: float = 65536.0
    """What float16 multiplies the loss by, so that small gradients survive."""
    scale_steps: int = 0
    """Steps since that scale changed."""
    window: dict[str, float] = field(default_factory=dict)
    """Sums since the last line of metrics."""
    best: float | None = None
    """The best score of an evaluation so far."""
    best_step: int | None = None
    """The step of that evaluation."""
    stopped: bool = False
    """Whether early stopping has ended the run."""


@dataclass(kw_only=True)
class TrainState:
    """What learns, and how far it is."""

    model: nn.Module
    optimizer: Optimizer
    average: Average | None = None
    progress: Progress = field(default_factory=Progress)

    def tensors(self) -> dict[str, Tensor]:
        """Gather every tensor whole; a collective where parameters are sharded."""
        named = {f"model.{name}": tensor for name, tensor in self.model.state_dict().items()}
        for name, parameter in self.model.named_parameters():
            for slot, value in self.optimizer.state.get(parameter, {}).items():
                if isinstance(value, Tensor):
                    named[f"optimizer.{name}:{slot}"] = value
        if self.average is not None:
            named |= {f"average.{name}": tensor for name, tensor in self.average.shadow.items()}
        return {name: whole(tensor) for name, tensor in named.items()}

    @torch.no_grad()
    def restore(self, tensors: Mapping[str, Tensor], progress: Mapping[str, Any]) -> None:
        """Take over a stored state, or say everything in which it differs."""
        own = dict(self.model.state_dict())
        needed = {f"model.{name}" for name in own}
        needed |= {f"average.{name}" for name in self.average.shadow} if self.average else set()
        found = {name for name in tensors if not name.startswith("optimizer.")}
        wrong = [
            f"{name} of {tuple(tensors[f'model.{name}'].shape)} for {tuple(tensor.shape)}"
            for name, tensor in own.items()
            if f"model.{name}" in found and tensors[f"model.{name}"].shape != tensor.shape
        ]
        if needed != found or wrong:
            differences = [f"{name} is missing" for name in sorted(needed - found)]
            differences += [f"{name} is too many" for name in sorted(found - needed)] + wrong
            raise CheckpointError(f"the checkpoint is of another model: {'; '.join(differences)}.")
        for name, tensor in own.items():
            put(tensor, tensors[f"model.{name}"])
        for name, tensor in self.average.shadow.items() if self.average else ():
            put(tensor, tensors[f"average.{name}"])
        self.optimizer.state.clear()
        for name, parameter in self.model.named_parameters():
            prefix = f"optimizer.{name}:"
            slots = {key.removeprefix(prefix): tensors[key] for key in tensors if key.startswith(prefix)}
            if slots:
                self.optimizer.state[parameter] = {
                    slot: laid_out(tensor, parameter) if tensor.shape == parameter.shape else tensor.clone()
                    for slot, tensor in slots.items()
                }
        self.progress = Progress(**progress)

    def finite(self) -> bool:
        """Tell whether every weight is a number."""
        return all(bool(whole(weight).isfinite().all()) for weight in self.model.parameters())


def whole(tensor: Tensor) -> Tensor:
    """Gather a sharded tensor; others are whole already."""
    return tensor.full_tensor().detach() if isinstance(tensor, DTensor) else tensor.detach()


def put(target: Tensor, tensor: Tensor) -> None:
    """Copy a whole tensor into one that may be sharded."""
    target.copy_(laid_out(tensor, target))


def laid_out(tensor: Tensor, like: Tensor) -> Tensor:
    """Return a copy of a whole tensor on the devices and in the shards of another."""
    moved = tensor.to(like.device, copy=True)
    return distribute_tensor(moved, like.device_mesh, like.placements) if isinstance(like, DTensor) else moved
