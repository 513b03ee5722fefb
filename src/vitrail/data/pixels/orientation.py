"""Which way is up: the orientation that a camera writes into EXIF, and pixels turned accordingly."""

import struct
from typing import Any

import numpy as np
from jaxtyping import UInt8

PixelArray = UInt8[np.ndarray, "height width channel"]
NewPixelArray = UInt8[np.ndarray, "new_height new_width channel"]

UPRIGHT = 1
_TAG = 0x0112
_WHOLE_NUMBERS = {1: "B", 3: "H", 4: "I"}  # EXIF's types that an orientation is found in


def orientation_of(info: dict[Any, Any]) -> int:
    """Return the EXIF orientation, 1 to 8, of an image from Pillow's view of its header; 1 when there is none.

    An image with damaged EXIF is not refused; its orientation is 1.
    """
    exif = info.get("exif")
    if exif is None and isinstance(profile := info.get("Raw profile type exif"), str):
        try:  # some programs write EXIF into a PNG as text: a name, a length, hexadecimal digits
            exif = bytes.fromhex("".join(profile.split("\n")[3:]))
        except ValueError:
            return UPRIGHT
    return _parse(exif) if isinstance(exif, bytes) else UPRIGHT


def _parse(exif: bytes) -> int:
    """Look for the orientation in the first directory of EXIF, which is a small TIFF file."""
    tiff = exif.removeprefix(b"Exif\0\0")
    order = {b"II*\0": "<", b"MM\0*": ">"}.get(tiff[:4])
    if order is None:
        return UPRIGHT
    try:
        (start,) = struct.unpack_from(f"{order}I", tiff, 4)
        (count,) = struct.unpack_from(f"{order}H", tiff, start)
        for entry in range(start + 2, start + 2 + 12 * count, 12):
            tag, kind = struct.unpack_from(f"{order}HH", tiff, entry)
            if tag == _TAG and kind in _WHOLE_NUMBERS:
                (value,) = struct.unpack_from(order + _WHOLE_NUMBERS[kind], tiff, entry + 8)
                return value if UPRIGHT <= value <= 8 else UPRIGHT
    except struct.error:  # it points outside of itself
        pass
    return UPRIGHT


def turns_aside(orientation: int) -> bool:
    """Return whether this orientation swaps height and width."""
    return orientation >= 5


def upright(pixels: PixelArray, orientation: int) -> NewPixelArray:
    """Turn and mirror pixels so that up is up, as EXIF defines its eight orientations."""
    match orientation:
        case 2:
            turned = pixels[:, ::-1]
        case 3:
            turned = pixels[::-1, ::-1]
        case 4:
            turned = pixels[::-1]
        case 5:
            turned = pixels.transpose(1, 0, 2)
        case 6:
            turned = pixels.transpose(1, 0, 2)[:, ::-1]
        case 7:
            turned = pixels.transpose(1, 0, 2)[::-1, ::-1]
        case 8:
            turned = pixels.transpose(1, 0, 2)[::-1]
        case _:
            return pixels
    return np.ascontiguousarray(turned)
