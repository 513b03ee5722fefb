"""What a run took: time from its journal, arithmetic from its model and the steps that it took."""

from dataclasses import replace

import torch
from torch.utils.flop_counter import FlopCounterMode

from vitrail.base.journal import read_measurements
from vitrail.model.build import build
from vitrail.model.cost import cost
from vitrail.model.family import ModelConfig
from vitrail.runs.config import RunConfig
from vitrail.runs.plan import FLOPS_PER_MAC
from vitrail.runs.result import RunCost
from vitrail.runs.speed import matmul_peak
from vitrail.runs.train import Run
from vitrail.training.optimizers import is_frozen


def costs(run: Run, steps: int) -> RunCost:
    """Work out what the steps of a run up to `steps` took.

    The speed is that of the steps whose time was noted: after a stop, those since the last line of metrics were not.
    """
    rows = read_measurements(run.folder.path / "timing.jsonl")
    first = run.config.first_step
    need, flops = cost(run.config.model), training_flops(run.config, steps) - training_flops(run.config, first)
    seconds = sum((row.get("seconds", 0.0) for row in rows), 0.0)
    timed = sum(row.get("seconds", 0.0) * row.get("images_per_second", 0.0) for row in rows)
    cost_of_model = RunCost(parameters=need.parameters, gmacs_per_image=need.macs / 1e9, seconds=seconds)
    if not seconds or steps == first:
        return cost_of_model
    ranks = run.ranks
    cores = torch.get_num_threads() * ranks.world if ranks.device.type == "cpu" else ranks.world
    speed = timed / seconds
    rate = speed * flops / ((steps - first) * run.config.batch)
    return replace(
        cost_of_model,
        images_per_second=speed,
        gflops_per_second=rate / 1e9,
        share_of_peak=rate / (matmul_peak(ranks.device, torch.get_num_threads()) * ranks.world),
        core_hours=seconds * cores / 3600,
        exaflops=flops / 1e18,
    )


def training_flops(config: RunConfig, steps: int) -> float:
    """Count the FLOPs of the first `steps` steps: 6 for each multiply-accumulate, as the paper counts.

    Stages of smaller images count by their own size, the objective by its factor, frozen parts without the gradients
    that are not needed.
    """
    macs = 0
    for begin, end, size in config.phases:
        if (count := min(end, steps) - begin) > 0:
            macs += count * cost(replace(config.model, image_size=size)).macs
    flops = FLOPS_PER_MAC * macs * config.batch * config.objective.flops_factor(config.model)
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


def cost_rows(cost: RunCost) -> dict[str, float | int | str]:
    """Give costs names and units for the page, the three that matter most first."""
    rows: dict[str, float | int | str] = {}
    if cost.images_per_second is not None:
        rows["images/s"] = round(cost.images_per_second, 1)
    rows["parameters"] = cost.parameters
    rows["training time"] = f"{cost.seconds / 60:.1f} min"
    rows["GMACs of one image"] = cost.gmacs_per_image
    if cost.gflops_per_second is not None:
        rows["GFLOP/s"] = round(cost.gflops_per_second, 1)
    if cost.share_of_peak is not None:
        rows["share of this machine's matrix products"] = f"{cost.share_of_peak:.0%}"
    if cost.core_hours is not None:
        rows["core-hours"] = cost.core_hours
    if cost.exaflops is not None:
        rows["exaFLOPs in all"] = cost.exaflops
    return rows
