"""Change colours, as Pillow's ImageEnhance and ImageOps do, on uint8 of any number of channels.

What maps values to values alone is a table of 256; what needs red, green and blue leaves other images as they are.
"""

import numpy as np
import torch
from jaxtyping import UInt8
from torch import Tensor

from vitrail.base.shapes import Pixels

Table = UInt8[Tensor, "256"]
Plane = UInt8[Tensor, "height width"]

VALUES = np.arange(256, dtype=np.float32)


def brightness(pixels: Pixels, factor: float) -> Pixels:
    """Blend with black."""
    return _look_up(pixels, _blend_table(0, factor))


def contrast(pixels: Pixels, factor: float) -> Pixels:
    """Blend with the mean grey of the image."""
    plane = luma(pixels) if pixels.shape[0] == 3 else pixels
    counts = np.bincount(plane.numpy().ravel(), minlength=256)
    mean = int((counts @ np.arange(256)) / counts.sum() + 0.5)
    return _look_up(pixels, _blend_table(mean, factor))


def saturation(pixels: Pixels, factor: float) -> Pixels:
    """Blend with the grey version of the image."""
    if pixels.shape[0] != 3:
        return pixels
    grey = luma(pixels).float()
    return (grey + (pixels.float() - grey) * factor).clamp_(0, 255).to(torch.uint8)


def hue(pixels: Pixels, turns: float) -> Pixels:
    """Turn the colour circle; saturation and value stay.

    In the hexagonal colour model a channel is value - chroma * clip(min(k, 4 - k), 0, 1), where k = (n + hue * 6) mod 6
    and n = 5, 3, 1 for red, green and blue.
    """
    if pixels.shape[0] != 3:
        return pixels
    red, green, blue = colours = pixels.float()
    value, chroma = colours.amax(0), colours.amax(0) - colours.amin(0)
    safe = chroma.clamp(min=1.0)
    sixths = torch.where(
        value == red,
        (green - blue) / safe,
        torch.where(value == green, 2 + (blue - red) / safe, 4 + (red - green) / safe),
    )
    turned = torch.stack([(n + sixths + 6 * turns) % 6 for n in (5, 3, 1)])
    share = torch.minimum(turned, 4 - turned).clamp_(0, 1)
    return (value - chroma * share).round_().to(torch.uint8)


def luma(pixels: Pixels) -> Plane:
    """Return the grey version of red, green and blue, rounded as Pillow rounds it (ITU-R 601-2)."""
    red, green, blue = pixels.int()
    return (red * 19595 + green * 38470 + blue * 7471 + 0x8000 >> 16).to(torch.uint8)


def sharpness(pixels: Pixels, factor: float) -> Pixels:
    """Blend with the image smoothed by 3 x 3 pixels, the middle one counting five times; the border stays."""
    _, height, width = pixels.shape
    if min(height, width) < 3:
        return pixels
    wide = pixels.to(torch.int16)
    rows = wide[:, :-2] + wide[:, 1:-1] + wide[:, 2:]
    total = rows[:, :, :-2] + rows[:, :, 1:-1] + rows[:, :, 2:]
    middle = wide[:, 1:-1, 1:-1]
    smooth = ((total + 4 * middle).float() / 13 + 0.5).floor_()
    sharp = pixels.clone()
    sharp[:, 1:-1, 1:-1] = (smooth + (middle - smooth) * factor).clamp_(0, 255).to(torch.uint8)
    return sharp


def solarize(pixels: Pixels, threshold: int) -> Pixels:
    """Invert every value from `threshold` on."""
    values = torch.arange(256)
    return _look_up(pixels, torch.where(values < threshold, values, 255 - values).to(torch.uint8))


def posterize(pixels: Pixels, bits: int) -> Pixels:
    """Keep the highest bits of every value."""
    return pixels & (256 - (1 << 8 - bits))


def autocontrast(pixels: Pixels) -> Pixels:
    """Stretch each channel so that its darkest value becomes 0 and its brightest 255."""
    stretched = []
    for plane in pixels:
        low, high = int(plane.min()), int(plane.max())
        scale = 255.0 / max(high - low, 1)
        table = np.clip((np.arange(256) * scale - low * scale).astype(np.int64), 0, 255)
        stretched.append(_look_up(plane, torch.from_numpy(table.astype(np.uint8))) if high > low else plane)
    return _stack(stretched)


def equalize(pixels: Pixels) -> Pixels:
    """Spread the values of each channel so that all are about equally frequent."""
    spread = []
    for plane in pixels:
        counts = np.bincount(plane.numpy().ravel(), minlength=256)
        step = (counts.sum() - counts[counts > 0][-1]) // 255
        if step and (counts > 0).sum() > 1:
            before = np.cumsum(counts) - counts
            table = np.minimum((step // 2 + before) // step, 255).astype(np.uint8)
            spread.append(_look_up(plane, torch.from_numpy(table)))
        else:
            spread.append(plane)
    return _stack(spread)


def _blend_table(other: int, factor: float) -> Table:
    """Tabulate other + (value - other) * factor, cut to whole numbers as Pillow's blend cuts."""
    blended = other + (VALUES - other) * np.float32(factor)
    return torch.from_numpy(np.clip(blended, 0, 255).astype(np.uint8))


def _look_up(pixels: UInt8[Tensor, "*any"], table: Table) -> UInt8[Tensor, "*any"]:
    """Replace every value by its entry, keeping the order in memory."""
    rows = pixels.movedim(0, -1) if pixels.dim() == 3 else pixels  # as photos lie in memory
    found = torch.from_numpy(np.take(table.numpy(), rows.numpy()))
    return found.movedim(-1, 0) if pixels.dim() == 3 else found


def _stack(planes: list[Plane]) -> Pixels:
    """Put channels together, innermost in memory."""
    return torch.stack(planes, dim=-1).permute(2, 0, 1)
