"""What a training run will need before it starts: FLOPs, memory, time."""

import math
from dataclasses import dataclass
from typing import Literal

from vitrail.base.errors import ConfigError
from vitrail.model.cost import Cost, cost
from vitrail.model.family import ModelConfig
from vitrail.runs.config import RunConfig

Optimizer = Literal["adam", "sgd"]
Precision = Literal["float32", "bfloat16"]

FLOPS_PER_MAC = 6
"""A multiply-accumulate is 2 FLOPs, and the backward pass costs twice the forward pass."""
_STATE_VALUES = {"adam": 2, "sgd": 1}
_ACTIVATION_BYTES = {"float32": 4, "bfloat16": 2}


@dataclass(frozen=True, kw_only=True)
class Needs:
    """The needs of one run; memory in bytes on each device."""

    cost: Cost
    images: int
    epochs: float
    steps: int
    batch_per_device: int
    exaflops: float
    device_days: float
    days: float
    weights: int
    gradients: int
    optimizer: int
    activations: int
    checkpointed_activations: int
    largest_batch: int
    """Images on one device, without activation checkpointing."""
    largest_checkpointed_batch: int

    @property
    def fixed(self) -> int:
        """Memory that does not grow with the batch."""
        return self.weights + self.gradients + self.optimizer


def training_bytes(config: RunConfig, images: int) -> int:
    """Return the memory that training takes with this many images at once: weights, gradients, optimiser, activations.

    Frozen weights need neither gradients nor the activations below them; how many they are is not counted.
    """
    need = cost(config.model)
    if config.optimizer.frozen:
        return 4 * need.parameters
    activations = need.checkpointed_activations if config.execution.recompute else need.activations
    images = math.ceil(images * config.objective.activations_factor(config.model))
    width = 4 if config.precision == "float32" else 3  # half, but on a CPU attention and group norms compute in float32
    return 4 * (2 + _STATE_VALUES.get(config.optimizer.name, 1)) * need.parameters + width * activations * images


def work_out(
    config: ModelConfig,
    *,
    images: int,
    epochs: float,
    batch: int,
    devices: int,
    device_flops: float,
    utilisation: float,
    memory: float,
    optimizer: Optimizer,
    precision: Precision,
) -> Needs:
    """Work out a run of `epochs` over `images` with a global `batch` shared by `devices` of `memory` bytes each."""
    if batch % devices:
        raise ConfigError(
            f"a batch of {batch} does not split over {devices} devices; choose a multiple of {devices} for the batch."
        )
    need = cost(config)
    exaflops = FLOPS_PER_MAC * need.macs * images * epochs / 1e18
    device_days = exaflops * 1e18 / (device_flops * utilisation) / 86_400
    weights = 4 * need.parameters
    state = _STATE_VALUES[optimizer] * weights
    per_image = _ACTIVATION_BYTES[precision] * need.activations
    per_checkpointed_image = _ACTIVATION_BYTES[precision] * need.checkpointed_activations
    room = max(memory - 2 * weights - state, 0)
    return Needs(
        cost=need,
        images=images,
        epochs=epochs,
        steps=-(-round(images * epochs) // batch),
        batch_per_device=batch // devices,
        exaflops=exaflops,
        device_days=device_days,
        days=device_days / devices,
        weights=weights,
        gradients=weights,
        optimizer=state,
        activations=per_image * (batch // devices),
        checkpointed_activations=per_checkpointed_image * (batch // devices),
        largest_batch=int(room // per_image),
        largest_checkpointed_batch=int(room // per_checkpointed_image),
    )
