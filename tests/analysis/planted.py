"""Images whose class is the pattern of a small square in a known place, and models that have learned to see it.

A fifth class has no square: without it a model may take one of the patterns for granted where it sees none of the
others, and there would be nothing for a map of that class to point at. Pattern and noise have the same two greys in the
same number, and convolutions one group of channels: with a coloured square, or several groups, the statistics of the
norm would carry the class to every place of the feature map, and a map that points anywhere would be right. One
block of attention, but in `deep`, since with two the first may spread the class over tokens.
"""

from dataclasses import replace
from functools import cache

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from tests.tiny import resnet_config, vit_config
from vitrail import BackboneConfig, Preprocessing, build
from vitrail.model.family import ModelConfig
from vitrail.runtime.engine import TorchEngine

SIDE, CELL = 48, 8
DARK, BRIGHT = 60, 195
NOTHING = 4
PIXELS = Preprocessing(image_size=(SIDE, SIDE), mean=(0.5,), std=(0.5,))
SIZES = {"image_size": (SIDE, SIDE), "num_classes": NOTHING + 1, "channels": 1}
CONFIGS: dict[str, ModelConfig] = {
    "ViT": vit_config(patch_size=(CELL, CELL), depth=1, **SIZES),
    "mean": vit_config(patch_size=(CELL, CELL), depth=1, pool="mean", **SIZES),
    "hybrid": vit_config(
        backbone=BackboneConfig(blocks=(1,), width=8, norm_groups=1), patch_size=(2, 2), depth=1, **SIZES
    ),
    "ResNet": resnet_config(blocks=(1,), norm_groups=1, **SIZES),
    "deep": vit_config(patch_size=(CELL, CELL), depth=2, **SIZES),
}
STEPS = {"ViT": 200, "mean": 200, "hybrid": 150, "ResNet": 400, "deep": 200}


def patterns() -> Tensor:
    """Stripes that lie, stripes that stand, stripes that lean, a chessboard: half of each is bright."""
    row, column = torch.meshgrid(torch.arange(CELL), torch.arange(CELL), indexing="ij")
    return torch.stack([row // 2, column // 2, (row + column) // 2, row // 2 + column // 2]) % 2 == 0


def planted_images(count: int, seed: int, *, classes: int = NOTHING) -> tuple[Tensor, Tensor, Tensor]:
    """Return pixels, classes, and the cell of a grid of 6x6 that the square fills; the rest is noise."""
    generator = np.random.default_rng(seed)
    bright = torch.from_numpy(generator.integers(0, 2, (count, SIDE, SIDE))).bool()
    numbers = torch.from_numpy(generator.integers(0, classes, count))
    cells = torch.from_numpy(generator.integers(0, (SIDE // CELL) ** 2, count))
    squares = patterns()
    for image, number, cell in zip(bright, numbers.tolist(), cells.tolist(), strict=True):
        if number == NOTHING:
            continue
        top, left = cell // (SIDE // CELL) * CELL, cell % (SIDE // CELL) * CELL
        image[top : top + CELL, left : left + CELL] = squares[number]
    return torch.where(bright, BRIGHT, DARK).to(torch.uint8)[:, None], numbers, cells


def learn(engine: TorchEngine, *, steps: int, rate: float, classes: int, seed: int = 0) -> None:
    """Train the network of an engine on planted images, with a rate that falls to 0."""
    model = engine.model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=0.05)
    for step in range(steps):
        optimizer.param_groups[0]["lr"] = rate * (1 - step / steps)
        pixels, numbers, _ = planted_images(32, seed + step, classes=classes)
        optimizer.zero_grad()
        F.cross_entropy(model(engine.inputs(pixels)), numbers).backward()
        optimizer.step()
    model.eval()


def learned_patterns(config: ModelConfig) -> dict[str, Tensor]:
    """Return the weights of a network that knows the four patterns, with zeros for the class of nothing."""
    engine = TorchEngine(build(replace(config, num_classes=NOTHING), seed=0), PIXELS)
    learn(engine, steps=200, rate=6e-3, classes=NOTHING)
    weights = engine.model.state_dict()
    return weights | {
        "head.linear.weight": F.pad(weights["head.linear.weight"], (0, 0, 0, 1)),
        "head.linear.bias": F.pad(weights["head.linear.bias"], (0, 1)),
    }


@cache
def trained(name: str) -> tuple[TorchEngine, float]:
    """Return a network that has learned planted images, and its accuracy on others."""
    torch.manual_seed(0)
    model = build(CONFIGS[name], seed=0)
    engine = TorchEngine(model, PIXELS)
    if name == "hybrid":  # from the start it would take a pattern for nothing for long
        model.load_state_dict(learned_patterns(CONFIGS[name]))
        learn(engine, steps=STEPS[name], rate=3e-3, classes=NOTHING + 1, seed=50_000)
    else:
        learn(engine, steps=STEPS[name], rate=6e-3, classes=NOTHING + 1)
    pixels, classes, _ = planted_images(200, 10_000, classes=NOTHING + 1)
    return engine, float((engine.logits(pixels).argmax(1) == classes).float().mean())
