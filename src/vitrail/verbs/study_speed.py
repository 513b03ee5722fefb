"""How fast a model is on this machine, and how large a batch of it fits (App. D.5)."""

import time
from collections.abc import Sequence

import torch

from vitrail.base.errors import ConfigError
from vitrail.model.contract import Model
from vitrail.model.cost import cost
from vitrail.model.family import ModelConfig
from vitrail.runs.speed import free_memory, matmul_peak

BATCHES = (1, 8, 32)
"""Images at once, of which the fastest counts."""
SLOWER = 3
"""A pass with one image takes up to this many times what its products alone would at full speed."""


def speed_figures(model: Model, *, seconds: float) -> dict[str, float]:
    """Time forward passes at several batches, and work out the largest batch whose training fits into memory.

    A batch whose single pass would take longer than its part of the seconds is left out, but for the first.
    """
    config, device = model.config, next(model.parameters()).device
    share, best = seconds / len(BATCHES), 0.0
    for batch in BATCHES:
        if best and batch / best > share:
            break
        best = max(best, _images_per_second(model, config, batch, share, device))
    need = cost(config)
    room = free_memory() - 16 * need.parameters  # weights, gradients and two moments of Adam
    return {
        "images_per_second": best,
        "largest_batch": float(max(int(room / (4 * need.activations)), 0)),
        "gmacs": need.macs / 1e9,
        "parameters": float(need.parameters),
    }


def check_speed_time(configs: Sequence[ModelConfig], *, minutes: float, seeds: int, device: torch.device) -> None:
    """Refuse a time in which not even one pass of each model fits."""
    products = seeds * sum(2 * cost(config).macs for config in configs) / matmul_peak(device, torch.get_num_threads())
    need = SLOWER * products / 60
    if minutes < need:
        raise ConfigError(
            f"`minutes` is {minutes:g}, but one pass of each of {len(configs)} models, {seeds} times, takes about "
            f"{need:.1f} minutes; give that many, or fewer `seeds`."
        )


def _images_per_second(model: Model, config: ModelConfig, batch: int, seconds: float, device: torch.device) -> float:
    """Time passes for some seconds after a first one, which counts where it alone takes longer."""
    images = torch.zeros(batch, config.channels, *config.image_size, device=device)
    with torch.inference_mode():
        warming = _time_of(model, images)
        times = [warming] if warming > seconds else [_time_of(model, images)]
        while sum(times) < seconds:
            times.append(_time_of(model, images))
    return batch * len(times) / sum(times)


def _time_of(model: Model, images: torch.Tensor) -> float:
    began = time.perf_counter()
    float(model.eval()(images).sum())  # a device that works on its own has finished when the number is here
    return time.perf_counter() - began
