"""Change colours, as Pillow's ImageEnhance and ImageOps do, on uint8 of any number of channels.

An operation on single values is a table of 256; one on colours leaves images of other channels unchanged.
"""

import numpy as np
import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from vitrail.base.shapes import PixelBatch, Pixels

Table = UInt8[Tensor, "256"]

LUMA = torch.tensor([0.299, 0.587, 0.114])  # red, green and blue of a grey (ITU-R 601-2)
VALUES = np.arange(256, dtype=np.float32)


def brightness(pixels: Pixels, factor: float) -> Pixels:
    """Blend with black."""
    return _map_values(pixels, _blend_table(0, factor))


def contrast(pixels: Pixels, factor: float) -> Pixels:
    """Blend with the mean grey of the image."""
    return _map_values(pixels, _blend_table(mean_grey(pixels), factor))


def mean_grey(pixels: Pixels) -> int:
    """Return the mean grey of an image, as a whole level."""
    means = pixels.permute(1, 2, 0).reshape(-1, pixels.shape[0]).float().mean(0)
    return int((means @ LUMA if pixels.shape[0] == 3 else means.mean()) + 0.5)


def saturation(pixels: Pixels, factor: float) -> Pixels:
    """Blend with the grey version of the image."""
    if pixels.shape[0] != 3:
        return pixels
    colours = pixels.permute(1, 2, 0).float()
    grey = colours.view(-1, 3) @ LUMA
    blended = colours.mul_(factor).add_(grey.mul_(1 - factor).view(*colours.shape[:2], 1))
    return blended.clamp_(0, 255).to(torch.uint8).permute(2, 0, 1)


def hue(pixels: Pixels, turns: float) -> Pixels:
    """Turn the colour circle; saturation and value stay.

    In the hexagonal colour model a channel is value - chroma * clip(min(k, 4 - k), 0, 1), where k = (n + hue * 6) mod 6
    and n = 5, 3, 1 for red, green and blue.
    """
    return turned(pixels.float(), 6 * turns) if pixels.shape[0] == 3 else pixels


def turned(colours: Float[Tensor, "3 *pixel"], sixths_further: float | Tensor) -> UInt8[Tensor, "3 *pixel"]:
    """Turn red, green and blue by sixths of the colour circle."""
    red, green, blue = colours
    value, chroma = colours.amax(0), colours.amax(0) - colours.amin(0)
    safe = chroma.clamp(min=1.0)
    sixths = torch.where(
        value == red,
        (green - blue) / safe,
        torch.where(value == green, 2 + (blue - red) / safe, 4 + (red - green) / safe),
    )
    turned = torch.stack([(n + sixths + sixths_further) % 6 for n in (5, 3, 1)])
    share = torch.minimum(turned, 4 - turned).clamp_(0, 1)
    return (value - chroma * share).round_().to(torch.uint8)


def grey(images: PixelBatch) -> PixelBatch:
    """Give red, green and blue the same grey, which is Pillow's: weights in parts of 65,536, rounded."""
    if images.shape[1] != 3:
        return images
    red, green, blue = images.to(torch.int32).unbind(1)
    level = (19595 * red + 38470 * green + 7471 * blue + 0x8000) >> 16
    return level.to(torch.uint8)[:, None].expand(-1, 3, -1, -1)


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
    return _map_values(pixels, torch.where(values < threshold, values, 255 - values).to(torch.uint8))


def posterize(pixels: Pixels, bits: int) -> Pixels:
    """Keep the highest bits of every value."""
    return pixels & (256 - (1 << 8 - bits))


def autocontrast(pixels: Pixels) -> Pixels:
    """Stretch each channel so that its darkest value becomes 0 and its brightest 255."""
    channels, height, width = pixels.shape
    lines = pixels.permute(1, 2, 0).reshape(height, width * channels)
    low = lines.amin(0).view(width, channels).amin(0).float()
    high = lines.amax(0).view(width, channels).amax(0).float()
    scale = torch.where(high > low, 255 / (high - low), 1.0)
    shift = torch.where(high > low, -low * scale, 0.0)
    stretched = lines.float().mul_(scale.repeat(width)).add_(shift.repeat(width)).clamp_(0, 255)
    return stretched.to(torch.uint8).view(height, width, channels).permute(2, 0, 1)


def equalize(pixels: Pixels) -> Pixels:
    """Spread the values of each channel so that all are about equally frequent."""
    channels, height, width = pixels.shape
    values = pixels.permute(1, 2, 0).numpy() + np.arange(channels, dtype=np.uint16) * 256  # each channel has its 256
    counts = np.bincount(values.ravel(), minlength=channels * 256).reshape(channels, 256)
    last = counts[np.arange(channels), 255 - np.argmax(counts[:, ::-1] > 0, axis=1)]
    step = (height * width - last) // 255
    spread = (step[:, None] // 2 + np.cumsum(counts, axis=1) - counts) // np.maximum(step, 1)[:, None]
    tables = np.where(step[:, None] > 0, np.minimum(spread, 255), np.arange(256)).astype(np.uint8)
    return torch.from_numpy(np.take(tables, values)).permute(2, 0, 1)


def _blend_table(other: int, factor: float) -> Table:
    """Tabulate other + (value - other) * factor, cut to whole numbers as Pillow's blend cuts."""
    blended = other + (VALUES - other) * np.float32(factor)
    return torch.from_numpy(np.clip(blended, 0, 255).astype(np.uint8))


def _map_values(pixels: Pixels, table: Table) -> Pixels:
    """Replace every value by its entry."""
    rows = pixels.permute(1, 2, 0)
    values = bytearray(rows.contiguous().numpy()).translate(table.numpy().tobytes())  # twice as fast as an index
    return torch.frombuffer(values, dtype=torch.uint8).view(rows.shape).permute(2, 0, 1)
