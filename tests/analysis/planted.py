"""Images whose class is the pattern of a small square in a known place, and models that have learned to see it.

A fifth class has no square: without it a model may take one of the patterns for granted where it sees none of the
others, and there would be nothing for a map of that class to point at. Pattern and noise have the same two greys in the
same number, and convolutions one group of channels: with a coloured square, or several groups, the statistics of the
norm would carry the class to every place of the feature map, and a map that points anywhere would be right. One
block of attention, but in `deep`, since with two the first may spread the class over tokens.
"""

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
STEPS = {"ViT": 200, "mean": 200, "hybrid": 400, "ResNet": 400, "deep": 200}


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


@cache
def trained(name: str) -> tuple[TorchEngine, float]:
    """Return a network that has learned planted images, and its accuracy on others."""
    torch.manual_seed(0)
    model = build(CONFIGS[name], seed=0)
    engine = TorchEngine(model, PIXELS)
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=6e-3, weight_decay=0.05)
    for step in range(STEPS[name]):
        optimizer.param_groups[0]["lr"] = 6e-3 * (1 - step / STEPS[name])
        pixels, classes, _ = planted_images(32, step, classes=NOTHING + 1)
        optimizer.zero_grad()
        F.cross_entropy(model(engine.inputs(pixels)), classes).backward()
        optimizer.step()
    model.eval()
    pixels, classes, _ = planted_images(200, 10_000)
    return engine, float((engine.logits(pixels).argmax(1) == classes).float().mean())
