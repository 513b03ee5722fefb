"""Any way of writing colours to red, green and blue of 8 bits; and arrays, and other numbers of channels."""

from collections.abc import Iterator

import numpy as np
from jaxtyping import UInt8
from PIL import Image

from vitrail.base.errors import ImageError
from vitrail.data.pixels.orientation import PixelArray

_SIXTEEN_BITS = ("I", "I;16", "I;16L", "I;16B", "I;16N")
_PIECE = 2**21
"""Pixels that are converted at a time."""
_LUMA = (19595, 38470, 7471)  # ITU-R 601: 0.299, 0.587, 0.114 as parts of 2^16, which Pillow's "L" has too


def rgb(image: Image.Image) -> PixelArray:
    """Turn a loaded Pillow image of any mode into red, green and blue.

    Transparent parts are blended with white. Grey of 16 bits is divided by 257, so that black stays black and white
    white. Colour profiles are not applied. A large image is converted a piece at a time, to save memory.
    """
    if image.width * image.height <= _PIECE:
        return _rgb(image)
    pixels = np.empty((image.height, image.width, 3), np.uint8)
    for top, left, bottom, right in _pieces(image.height, image.width):
        pixels[top:bottom, left:right] = _rgb(image.crop((left, top, right, bottom)))
    return pixels


def _pieces(height: int, width: int) -> Iterator[tuple[int, int, int, int]]:
    """Cut an image into boxes (top, left, bottom, right) of whole rows, or of parts of a row that is very long."""
    columns = min(width, _PIECE)
    rows = _PIECE // columns
    for top in range(0, height, rows):
        for left in range(0, width, columns):
            yield top, left, min(top + rows, height), min(left + columns, width)


def _rgb(image: Image.Image) -> PixelArray:
    if image.mode in _SIXTEEN_BITS:
        return _sixteen_bits(image)
    if image.mode == "F":
        raise ImageError("its pixels are fractions, which have no agreed black and white; convert it to 8 or 16 bits.")
    if image.mode in ("RGBA", "RGBa", "LA", "La", "PA") or "transparency" in image.info:
        return np.array(_on_white(image))
    return np.array(image if image.mode == "RGB" else image.convert("RGB"))


def _on_white(image: Image.Image) -> Image.Image:
    if image.mode == "La":  # Pillow undoes a premultiplied alpha only to its own kind
        image = image.convert("LA")
    image = image.convert("RGBA")
    white = Image.new("RGB", image.size, "white")
    white.paste(image, mask=image.getchannel("A"))
    return white


def _sixteen_bits(image: Image.Image) -> PixelArray:
    values = np.asarray(image).astype(np.int32)
    low, high = int(values.min()), int(values.max())
    if low < 0 or high > 65535:
        raise ImageError(
            f"its pixels go from {low} to {high}, but 16 bits hold 0 to 65535; convert it to 8 or 16 bits."
        )
    grey = ((values + 128) // 257).astype(np.uint8)
    if isinstance(clear := image.info.get("transparency"), int):
        grey[values == clear] = 255
    return np.repeat(grey[:, :, None], 3, axis=2)


def array_to_channels(pixels: PixelArray, channels: int) -> UInt8[np.ndarray, "height width new_channel"]:
    """Give an image another number of channels: grey repeated for three, ITU-R 601 luma for one."""
    own = pixels.shape[2]
    if own == channels:
        return pixels
    if own == 1 and channels == 3:
        return np.repeat(pixels, 3, axis=2)
    if own == 3 and channels == 1:
        grey = np.empty((*pixels.shape[:2], 1), np.uint8)
        for top, left, bottom, right in _pieces(*pixels.shape[:2]):
            red, green, blue = pixels[top:bottom, left:right].astype(np.int32).transpose(2, 0, 1)
            luma = (red * _LUMA[0] + green * _LUMA[1] + blue * _LUMA[2] + (1 << 15)) >> 16
            grey[top:bottom, left:right, 0] = luma
        return grey
    raise ImageError(
        f"an image of {own} channels cannot become one of {channels}; "
        "only grey and colour turn into each other, so give images of the model's channels."
    )
