"""What a run took: time from its journal, arithmetic from its model and the steps that it really made."""

from dataclasses import replace

import torch
from torch.utils.flop_counter import FlopCounterMode

from vitrail.base.journal import read_rows
from vitrail.model.build import build
from vitrail.model.contract import ModelConfig
from vitrail.model.cost import cost
from vitrail.runs.config import RunConfig
from vitrail.runs.plan import FLOPS_PER_MAC
from vitrail.runs.speed import matmul_peak
from vitrail.runs.train import Run
from vitrail.train.optimizers import is_frozen


def costs(run: Run, steps: int) -> dict[str, float]:
    """Work out what `steps` steps took.

    The speed is that of the steps whose time was noted: after a stop, those since the last line of metrics were not.
    """
    rows = read_rows(run.folder.path / "timing.jsonl")
    need, flops = cost(run.config.model), training_flops(run.config, steps)
    seconds = sum(row.get("seconds", 0.0) for row in rows)
    timed = sum(row.get("seconds", 0.0) * row.get("images_per_second", 0.0) for row in rows)
    found = {"parameters": float(need.parameters), "gmacs_per_image": need.macs / 1e9, "seconds": seconds}
    if not seconds or not steps:
        return found
    ranks = run.ranks
    cores = torch.get_num_threads() * ranks.world if ranks.device.type == "cpu" else ranks.world
    speed = timed / seconds
    rate = speed * flops / (steps * run.config.batch)
    return found | {
        "images_per_second": speed,
        "gflops_per_second": rate / 1e9,
        "share_of_peak": rate / (matmul_peak(ranks.device) * ranks.world),
        "core_hours": seconds * cores / 3600,
        "exaflops": flops / 1e18,
    }


def training_flops(config: RunConfig, steps: int) -> float:
    """Count the FLOPs of the first `steps` steps: 6 for each multiply-accumulate, as the paper counts.

    Stages of smaller images count by their own size, the objective by its factor, frozen parts without the gradients
    that are not needed.
    """
    macs = 0
    for begin, end, size in config.phases:
        macs += max(min(end, steps) - begin, 0) * cost(replace(config.model, image_size=size)).macs
    flops = FLOPS_PER_MAC * macs * config.batch * config.objective.flops_factor
    if config.optimizer.frozen:
        flops *= _counted(config.model, config.optimizer.frozen) / _counted(config.model, ())
    return float(flops)


def _counted(config: ModelConfig, frozen: tuple[str, ...]) -> int:
    """Let torch count the FLOPs of a step with one image, without computing anything."""
    model = build(config, device="meta").eval()
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(not is_frozen(name, frozen))
    with FlopCounterMode(display=False) as counter:
        total = model(torch.empty(1, config.channels, *config.image_size, device="meta")).sum()
        if total.requires_grad:
            total.backward()
    return counter.get_total_flops()


def told_costs(spent: dict[str, float]) -> dict[str, float | str]:
    """Give costs names and units for the page, the three that people look for first in front."""
    told: dict[str, float | str] = {}
    if "images_per_second" in spent:
        told["images/s"] = round(spent["images_per_second"], 1)
    told["parameters"] = spent["parameters"]
    told["training time"] = f"{spent['seconds'] / 60:.1f} min"
    told["GMACs of one image"] = spent["gmacs_per_image"]
    if "images_per_second" in spent:
        told["GFLOP/s"] = round(spent["gflops_per_second"], 1)
        told["share of this machine's matrix products"] = f"{spent['share_of_peak']:.0%}"
        told["core-hours"] = spent["core_hours"]
        told["exaFLOPs in all"] = spent["exaflops"]
    return told
