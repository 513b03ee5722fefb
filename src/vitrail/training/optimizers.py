"""Adam and SGD with decoupled decay, and which parameter gets which rate and decay (Table 3, App. B.1)."""

import math
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn
from torch.nn.utils import get_total_norm
from torch.optim import Optimizer

from vitrail.base.errors import ConfigError, did_you_mean
from vitrail.training.learner import MODEL, Learner
from vitrail.training.muon import Muon

OptimizerName = Literal["adam", "sgd", "muon"]
MUON_MOMENTUM = 0.95
LARGEST_MUON_RATE = 1000.0
DecayScope = Literal["kernels", "all"]
DecayScale = Literal["rate", "schedule"]


@dataclass(frozen=True, kw_only=True)
class OptimizerConfig:
    """How weights follow gradients; the learning rate itself is the schedule's."""

    name: OptimizerName = "adam"
    """Adam; SGD with momentum; or Muon for the kernels of encoder blocks, and Adam for the rest."""
    beta1: float = 0.9
    """Memory of Adam's mean gradient, and the momentum of SGD."""
    beta2: float = 0.999
    """Memory of Adam's mean squared gradient."""
    eps: float = 1e-8
    """Added by Adam to the root of the mean squared gradient."""
    weight_decay: float = 0.0
    """Decoupled: in each step, weights lose this part of themselves times the rate, or times the schedule."""
    weight_decay_end: float | None = None
    """Weight decay of the last step, reached by a cosine; None keeps it constant."""
    decay_on: DecayScope = "kernels"
    """Decay kernels only, or all parameters."""
    decay_by: DecayScale = "rate"
    """Decay times the learning rate (AdamW), or times the schedule alone, from 0 to 1 (big_vision)."""
    clip_norm: float | None = None
    """Largest global norm of the gradient; None clips nothing."""
    layer_decay: float = 1.0
    """Factor on the learning rate from each layer to the one before it; the head has the full rate."""
    muon_rate: float = 10.0
    """How many times the learning rate the kernels under Muon have."""
    rest_rate: float = 1.0
    """How many times the learning rate all other parameters have beside Muon, where Adam moves them."""
    frozen: tuple[str, ...] = ()
    """Parameters that stay as they are, by name, with * for anything: embedding.*, encoder.blocks.0.*."""

    def __post_init__(self) -> None:
        """Refuse values outside their bounds."""
        for name, kinds in (("name", OptimizerName), ("decay_on", DecayScope), ("decay_by", DecayScale)):
            value, choices = getattr(self, name), get_args(kinds)
            if value not in choices:
                raise ConfigError(
                    f"the optimiser's {name} is {value!r}, but must be one of {', '.join(choices)}."
                    + did_you_mean(str(value), choices)
                )
        if not (0 <= self.beta1 < 1 and 0 <= self.beta2 < 1 and self.eps > 0 and self.weight_decay >= 0):
            raise ConfigError(
                f"the optimiser has betas {self.beta1} and {self.beta2}, epsilon {self.eps} and weight decay "
                f"{self.weight_decay}; betas must be from 0 to below 1, epsilon above 0, decay at least 0."
            )
        if self.weight_decay_end is not None and self.weight_decay_end <= 0:
            raise ConfigError(f"weight_decay_end is {self.weight_decay_end}, but must be above 0, or none.")
        if self.weight_decay_end is not None and not self.weight_decay:
            raise ConfigError("weight_decay_end needs a weight_decay above 0 to start from.")
        if self.clip_norm is not None and self.clip_norm <= 0:
            raise ConfigError(f"clip_norm is {self.clip_norm}, but must be above 0, or none.")
        for name in ("muon_rate", "rest_rate"):
            if not 0 < getattr(self, name) <= LARGEST_MUON_RATE:
                factor = getattr(self, name)
                raise ConfigError(f"{name} is {factor}, but must be above 0 and at most {LARGEST_MUON_RATE:g}.")
        if not 0 < self.layer_decay <= 1:
            raise ConfigError(f"layer_decay is {self.layer_decay}, but must be above 0 and at most 1.")


def freeze(module: nn.Module, patterns: tuple[str, ...]) -> None:
    """Stop the gradients of the parameters that the patterns name; a pattern that names none is refused.

    In a learner, the model's parameters have the names that they have in the model.
    """
    named = {name.removeprefix(MODEL): parameter for name, parameter in module.named_parameters()}
    names = list(named)
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in names):
            raise ConfigError(
                f"no parameter is called {pattern!r}, so it cannot be frozen; names are such as "
                f"{', '.join(names[:2])} and {names[-1]}.{did_you_mean(pattern, names)}"
            )
    for name, parameter in named.items():
        if is_frozen(name, patterns):
            parameter.requires_grad_(False)
    if not any(parameter.requires_grad for parameter in named.values()):
        raise ConfigError(f"{', '.join(patterns)} freeze every parameter; leave something to learn.")


def is_frozen(name: str, patterns: tuple[str, ...]) -> bool:
    """Return whether a parameter's name matches one of the patterns."""
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def make_optimizer(learner: Learner, config: OptimizerConfig, peak: float) -> Optimizer:
    """Group the parameters by decay and layer, and hand them to torch's fused optimiser; `peak` is the highest rate."""
    device = next(learner.parameters()).device.type
    fused = device in ("cpu", "cuda") and not any(hasattr(weight, "device_mesh") for weight in learner.parameters())
    groups = parameter_groups(learner, config)
    for group in groups:
        group["lr"] = peak * group["rate_factor"]
        # AdamW multiplies decay by the rate: dividing by the peak leaves the schedule alone.
        group["weight_decay"] /= peak if config.decay_by == "schedule" else 1.0
        if config.weight_decay_end is not None and group["weight_decay"]:
            group["decays"] = (
                group["weight_decay"],
                group["weight_decay"] * config.weight_decay_end / config.weight_decay,
            )
    if config.name == "muon":
        if not fused and device in ("cpu", "cuda"):
            raise ConfigError("Muon needs whole matrices, which shards are not; take adam, or leave `shard` out.")
        return Muon(groups, betas=(config.beta1, config.beta2), eps=config.eps, fused=fused)
    if config.name == "adam":
        return torch.optim.AdamW(groups, betas=(config.beta1, config.beta2), eps=config.eps, fused=fused)
    return DecoupledSGD(groups, momentum=config.beta1, fused=fused)


def parameter_groups(learner: Learner, config: OptimizerConfig) -> list[dict[str, Any]]:
    """Put every parameter that learns into the group of its decay and rate."""
    last = len(learner.model.layers()) - 1
    matrices = learner.matrices() if config.name == "muon" else {}
    groups: dict[tuple[float, float, int], dict[str, Any]] = {}
    for name, parameter in learner.named_parameters():
        if not parameter.requires_grad:
            continue
        decay = config.weight_decay if config.decay_on == "all" or is_kernel(name, parameter) else 0.0
        stacked = matrices.get(name, 0)
        own = config.muon_rate if stacked else config.rest_rate if config.name == "muon" else 1.0
        factor = config.layer_decay ** (last - learner.depth_of(name)) * own
        settings = {"weight_decay": decay, "rate_factor": factor}
        if config.name == "muon":
            settings |= {"stacked": stacked, "momentum": MUON_MOMENTUM}
        group = groups.setdefault((decay, factor, stacked), {"params": []} | settings)
        group["params"].append(parameter)
    return list(groups.values())


def is_kernel(name: str, parameter: Tensor) -> bool:
    """Return whether a parameter is a kernel, and not a bias, norm, token or position."""
    return name.endswith("weight") and parameter.ndim >= 2


def set_rate(optimizer: Optimizer, rate: float, *, done: float = 0.0) -> None:
    """Give each group its part of the learning rate, and its weight decay where it follows the share of steps taken.

    From a to b by a cosine: b + (a - b) (1 + cos(pi done)) / 2.
    """
    for group in optimizer.param_groups:
        group["lr"] = rate * group["rate_factor"]
        if "decays" in group:
            start, end = group["decays"]
            group["weight_decay"] = end + (start - end) * (1 + math.cos(math.pi * done)) / 2


def clip(learner: nn.Module, most: float | None) -> Tensor:
    """Scale gradients down to a global norm, and return the norm that they had."""
    gradients = [weight.grad for weight in learner.parameters() if weight.grad is not None]
    norm = get_total_norm(gradients)
    norm = norm.full_tensor() if hasattr(norm, "full_tensor") else norm
    if most is not None:
        torch._foreach_mul_(gradients, torch.clamp(most / (norm + 1e-6), max=1.0))
    return norm


class DecoupledSGD(torch.optim.SGD):
    """SGD with momentum whose weight decay shrinks weights and not gradients, as AdamW's does."""

    def step(self, closure: Any = None) -> Any:
        """Decay, then follow the momentum."""
        decays = [group["weight_decay"] for group in self.param_groups]
        with torch.no_grad():
            for group in self.param_groups:
                moving = [weight for weight in group["params"] if weight.grad is not None]
                if group["weight_decay"]:
                    torch._foreach_mul_(moving, 1 - group["lr"] * group["weight_decay"])
                group["weight_decay"] = 0.0
                self._begin_late(moving)
        try:
            return super().step(closure)
        finally:
            for group, decay in zip(self.param_groups, decays, strict=True):
                group["weight_decay"] = decay

    def _begin_late(self, moving: list[Tensor]) -> None:
        """Give weights without a gradient until now the momentum 0, which the fused kernel needs for all or none."""
        new = [weight for weight in moving if self.state[weight].get("momentum_buffer") is None]
        if len(new) < len(moving):
            for weight in new:
                self.state[weight]["momentum_buffer"] = torch.zeros_like(weight)
