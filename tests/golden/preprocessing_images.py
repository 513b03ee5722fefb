"""Images made of whole numbers alone, the same wherever they are made: slopes, edges and fine texture."""

import numpy as np

SIZES = [(300, 400), (400, 301), (50, 50), (260, 1000), (128, 97), (225, 224)]
GREY = (180, 243)


def photo(height: int, width: int, channels: int = 3) -> np.ndarray:
    """An image of uint8, height x width x channel, with something to get wrong at every scale."""
    y, x, c = np.meshgrid(np.arange(height), np.arange(width), np.arange(channels), indexing="ij")
    slope = np.abs((x * (3 + c) + y * (2 + 2 * c)) % 512 - 256) // 2
    edges = 60 * ((x // 37 + y // 23 + c) % 2)
    rings = ((x * x * 7 + y * y * 13 + x * y * 5) >> 6) % 48
    grain = (((x * 73856093) ^ (y * 19349663) ^ (c * 83492791)) >> 7) % 32
    return np.clip(slope + edges + rings + grain, 0, 255).astype(np.uint8)
