"""Everything that one step hands to the next, as named tensors and a few numbers.

A run is a function of its config and this state: with both, it resumes exactly as if it had not stopped. Randomness
is not here, since it depends on the step alone (`base/seeds.py`).
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.distributed.tensor import DTensor, distribute_tensor
from torch.optim import Optimizer

from vitrail.base.errors import CheckpointError
from vitrail.training.averaging import Average
from vitrail.training.learner import Learner


@dataclass(kw_only=True)
class Progress:
    """How far a run is; all of it is stored in checkpoints as JSON."""

    step: int = 0
    """Updates done, or passed over."""
    bad_steps: list[int] = field(default_factory=list)
    """Steps that were skipped, since their loss was not finite."""
    loss_scale: float = 65536.0
    """Factor on the loss in float16, so that small gradients survive."""
    scale_steps: int = 0
    """Steps since that scale changed."""
    window: dict[str, float] = field(default_factory=dict)
    """Sums since the last line of metrics."""
    best: float | None = None
    """The best score of an evaluation so far; with the other sign where less is better."""
    best_step: int | None = None
    """The step of that evaluation."""
    seconds: float = 0.0
    """Time that a run with minutes had taken when it was saved."""
    stopped: bool = False
    """Whether early stopping has ended the run."""
    evaluated: dict[str, int] = field(default_factory=dict)
    """The step at which each evaluator last ran, by its name; an interrupted one runs again on resume."""


@dataclass(kw_only=True)
class TrainState:
    """The learner, its optimiser and averages, and the progress."""

    learner: Learner
    optimizer: Optimizer
    average: Average | None = None
    progress: Progress = field(default_factory=Progress)

    @contextmanager
    def saved_weights(self) -> Iterator[None]:
        """Give the learner, in evaluation mode, the weights that the run would save: the averaged, if it averages."""
        with nullcontext() if self.average is None else self.average.applied():
            self.learner.eval()
            try:
                yield
            finally:
                self.learner.train()

    def tensors(self) -> dict[str, Tensor]:
        """Gather every tensor whole; a collective where parameters are sharded."""
        named = {f"learner.{name}": tensor for name, tensor in self.learner.state_dict().items()}
        for name, parameter in self.learner.named_parameters():
            for slot, value in self.optimizer.state.get(parameter, {}).items():
                if isinstance(value, Tensor):
                    named[f"optimizer.{name}:{slot}"] = value
        if self.average is not None:
            named |= {f"average.{name}": tensor for name, tensor in self.average.shadow.items()}
        return {name: whole(tensor) for name, tensor in named.items()}

    @torch.no_grad()
    def restore(self, tensors: Mapping[str, Tensor], progress: Progress) -> None:
        """Restore a stored state, or raise an error with every difference."""
        own = {f"learner.{name}": tensor for name, tensor in self.learner.state_dict().items()}
        if self.average is not None:
            own |= {f"average.{name}": tensor for name, tensor in self.average.shadow.items()}
        _check_fits(own, tensors)
        for name, tensor in own.items():
            copy_into(tensor, tensors[name])
        self.optimizer.state.clear()
        for name, parameter in self.learner.named_parameters():
            prefix = f"optimizer.{name}:"
            slots = {key.removeprefix(prefix): tensors[key] for key in tensors if key.startswith(prefix)}
            if slots:
                self.optimizer.state[parameter] = {
                    slot: self._slot(tensor, parameter) for slot, tensor in slots.items()
                }
        self.progress = progress

    def _slot(self, tensor: Tensor, parameter: Tensor) -> Tensor:
        """Lay out an optimiser's state; counts of steps stay on the CPU unless a fused kernel reads them."""
        if tensor.shape == parameter.shape and tensor.ndim:
            return laid_out(tensor, parameter)
        return tensor.to(parameter.device if self.optimizer.defaults.get("fused") else "cpu", copy=True)

    def finite(self) -> bool:
        """Return whether every weight and every buffer is finite."""
        return all(bool(whole(tensor).isfinite().all()) for tensor in self.learner.state_dict().values())


def _check_fits(own: Mapping[str, Tensor], tensors: Mapping[str, Tensor]) -> None:
    names = {name for name in tensors if not name.startswith("optimizer.")}
    differences = [f"{name} is missing" for name in sorted(own.keys() - names)]
    differences += [f"{name} is surplus" for name in sorted(names - own.keys())]
    differences += [
        f"{name} of {tuple(tensors[name].shape)} for {tuple(tensor.shape)}"
        for name, tensor in own.items()
        if name in names and tensors[name].shape != tensor.shape
    ]
    if differences:
        raise CheckpointError(f"the checkpoint is of another model: {'; '.join(differences)}.")


def whole(tensor: Tensor) -> Tensor:
    """Gather a sharded tensor; others are whole already."""
    return tensor.full_tensor().detach() if isinstance(tensor, DTensor) else tensor.detach()


def copy_into(target: Tensor, tensor: Tensor) -> None:
    """Copy a whole tensor into one that may be sharded."""
    target.copy_(laid_out(tensor, target))


def laid_out(tensor: Tensor, like: Tensor) -> Tensor:
    """Return a copy of a whole tensor on the devices and in the shards of another."""
    moved = tensor.to(like.device, copy=True)
    return distribute_tensor(moved, like.device_mesh, like.placements) if isinstance(like, DTensor) else moved
