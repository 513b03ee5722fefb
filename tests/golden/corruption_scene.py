"""The scene whose corruptions were recorded, and the pixels of it that were stored."""

import numpy as np
from PIL import Image, ImageFilter

PLACES = 8
SEED = 7
"""Of numpy's old generator, whose numbers never change, before each recorded corruption."""


def scene(side: int) -> Image.Image:
    """Blurred noise at several scales, with a few sharp edges."""
    random = np.random.default_rng(side)
    total = np.zeros((side, side, 3), np.float32)
    for cells, weight in ((3, 1.0), (7, 0.8), (15, 0.5)):
        noise = Image.fromarray(random.integers(0, 256, (cells, cells, 3), dtype=np.uint8))
        total += weight * np.asarray(noise.resize((side, side), Image.Resampling.BICUBIC), np.float32)
    total = (total - total.min()) / (total.max() - total.min()) * 255
    total[side // 4 : side // 2, side // 3 : side // 2] = (250, 20, 60)
    return Image.fromarray(total.astype(np.uint8)).filter(ImageFilter.GaussianBlur(0.5))


def shown(pixels: np.ndarray) -> np.ndarray:
    """Return pixels on a grid, corners included."""
    places = np.linspace(0, len(pixels) - 1, PLACES).round().astype(int)
    return pixels[places][:, places]
