"""Bytes to pixels: image files as tensors."""

from PIL import Image

from vitrail.base.shapes import Pixels
from vitrail.data.pixels.encoded import Header, array_of_pil, decode_array, probe
from vitrail.data.pixels.tensors import from_array, to_channels

__all__ = ["Header", "decode", "from_array", "from_pil", "probe", "to_channels"]


def decode(encoded: bytes, *, max_pixels: int | None = None) -> Pixels:
    """Turn an image file into upright red, green and blue, in memory row by row and pixel by pixel.

    Whatever is wrong with the file, the answer is one `ImageError`.
    """
    return from_array(decode_array(encoded, max_pixels=max_pixels))


def from_pil(image: Image.Image, *, max_pixels: int | None = None) -> Pixels:
    """Turn an image of Pillow into pixels by the same rules as a file."""
    return from_array(array_of_pil(image, max_pixels=max_pixels))
