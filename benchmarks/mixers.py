"""Time and memory of each token mixer against the number of tokens, beside fused attention, and where lines cross.

    python benchmarks/mixers.py --out docs/mixers

One mixer alone (no MLP), one image, forward pass without gradients: CPU seconds of one thread, the best of interleaved
rounds, so that other programs matter little. Memory is the growth of the peak of the process over the state before the
pass. The exponent is the slope of log time over log tokens from the second-largest to the largest size.
"""

import argparse
import ctypes
import json
import math
import os
import time
from functools import partial
from pathlib import Path

import numpy as np
import torch

from vitrail import ViTConfig, build
from vitrail.model.mixer_settings import WindowAttention, as_mixer
from vitrail.report.charts import ROLES, Chart, Line

MIXERS = ("attention", "linear", "window", "axial", "sparse", "pooling", "convolution")
SIDES = (16, 32, 64, 128)
DIM, HEADS, ROUNDS = 64, 2, 3


def make(kind: str, side: int) -> torch.nn.Module:
    mixer = WindowAttention(size=8) if kind == "window" else as_mixer(kind)
    config = ViTConfig(
        dim=DIM, depth=1, num_heads=HEADS, mlp_dim=DIM, patch_size=(1, 1), image_size=(side, side), pool="mean",
        positions="none", num_classes=0, mixer=mixer,
    )  # fmt: skip
    return build(config, seed=0).eval().encoder.blocks[0].attention


def resident(name: str) -> float:
    """Return a line of the process's memory, in MiB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name)) / 1024


def peak(work) -> float:
    ctypes.CDLL("libc.so.6").malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
    before = resident("VmRSS")
    work()
    return max(resident("VmHWM") - before, 0.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="name of the figures and of the JSON, without ending")
    out = parser.parse_args().out
    seconds = {kind: dict.fromkeys(SIDES, math.inf) for kind in MIXERS}
    memory = {kind: {} for kind in MIXERS}
    torch.set_num_threads(1)
    with torch.inference_mode():
        for side in SIDES:
            modules, tokens = {kind: make(kind, side) for kind in MIXERS}, torch.randn(1, side * side, DIM)
            for kind, module in modules.items():
                memory[kind][side] = peak(partial(module, tokens))
            for _ in range(ROUNDS):
                for kind, module in modules.items():
                    began = time.thread_time()
                    module(tokens)
                    seconds[kind][side] = min(seconds[kind][side], time.thread_time() - began)
    rows = []
    for kind in MIXERS:
        times = [seconds[kind][side] for side in SIDES]
        slope = math.log(times[-1] / times[-2]) / math.log((SIDES[-1] / SIDES[-2]) ** 2)
        cheaper = [side * side for side in SIDES if seconds[kind][side] < seconds["attention"][side]]
        rows.append({
            "mixer": kind, "exponent": round(slope, 2), "cheaper_from": cheaper[0] if cheaper else None,
            "milliseconds": {side * side: round(1000 * seconds[kind][side], 2) for side in SIDES},
            "mebibytes": {side * side: round(memory[kind][side], 1) for side in SIDES},
        })  # fmt: skip
        print(json.dumps(rows[-1]))
    x = np.array([float(side * side) for side in SIDES])
    chart = Chart(
        title=f"One mixer of width {DIM}, one image, one thread",
        lines=[
            Line(name=kind, x=x, y=np.log10([1000 * seconds[kind][side] for side in SIDES]),
                 role=ROLES[at % len(ROLES)], dashed=at >= len(ROLES), dots="both")
            for at, kind in enumerate(MIXERS)
        ],
        x_label="tokens", y_label="CPU milliseconds", log_x=True, y_axis=lambda value: f"{10**value:.3g}",
    )  # fmt: skip
    out.parent.mkdir(parents=True, exist_ok=True)
    out.with_suffix(".png").write_bytes(chart.picture("png"))
    load = os.getloadavg()[0]
    out.with_suffix(".json").write_text(json.dumps({"rows": rows, "load": load, "torch": torch.__version__}, indent=1))


if __name__ == "__main__":
    main()
