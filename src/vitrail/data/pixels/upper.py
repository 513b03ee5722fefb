"""The upper part of a JPEG photo, for crops that do not need the rest.

A JPEG file is one run of bits from the top to the bottom, so that nothing can be left out above a crop; but a decoder
whose header states fewer rows stops after them. Its pixels are those of the whole photo. Its first complaint is about
the first problem: when that is the bytes that are left over, everything before them was sound.
"""

import re
import struct
from collections.abc import Callable

import numpy as np

from vitrail.base.limits import IMAGE_PIXELS
from vitrail.base.shapes import Pixels
from vitrail.data.pixels.jpeg import EXIF, SCAN, SEQUENTIAL, segments
from vitrail.data.pixels.orientation import UPRIGHT, orientation_of
from vitrail.data.pixels.tensors import from_array

try:
    import simplejpeg  # type: ignore[import-untyped, import-not-found, unused-ignore]
except ImportError:
    simplejpeg = None

RowsNeeded = Callable[[tuple[int, int]], int]
"""How many rows from the top are needed of an image of some height and width."""

CONTEXT = 2  # colours are stored for two rows at a time, and a row is smoothed with the next two

_LEFT_OVER = re.compile(r"Corrupt JPEG data: \d+ extraneous bytes before marker 0xd9")
_OF_NO_MATTER = (0xC4, 0xDB, 0xFE, 0xE0, *range(0xE2, 0xF0))  # tables, comments, and what programs put there


def decode_upper(encoded: bytes, needed: RowsNeeded) -> Pixels | None:
    """Decode an upright photo as far down as needed, or return None where only `decode` can decide.

    The result has the size of the whole photo; what is below the rows needed is undefined.
    """
    if simplejpeg is None or (field := _height_field(encoded)) is None:
        return None
    height, width = struct.unpack_from(">HH", encoded, field)
    rows = min(needed((height, width)) + CONTEXT, height) if height * width else 0
    if not 0 < rows < height or height * width > IMAGE_PIXELS.value:
        return None
    pixels = np.empty((height, width, 3), dtype=np.uint8)
    shortened = b"".join((encoded[:field], rows.to_bytes(2), encoded[field + 2 :]))
    try:
        simplejpeg.decode_jpeg(shortened, "RGB", buffer=pixels)
    except ValueError as error:
        if not _LEFT_OVER.fullmatch(str(error)):
            return None
    return from_array(pixels)


def _height_field(encoded: bytes) -> int | None:
    """Find the height in a file's header, if the file is plain: upright, sequential, one scan, no restarts."""
    field, components = None, 0
    for marker, at, content in segments(encoded):
        if marker in SEQUENTIAL and field is None and len(content) > 5:
            components = content[5]
            heights = [sampling & 15 for sampling in content[7::3]]  # in blocks of 8 rows, for each component
            if content[0] != 8 or components not in (1, 3) or len(heights) != components or max(heights) > CONTEXT:
                return None
            field = at + 5
        elif marker == EXIF:
            if content.startswith(b"Exif\0\0") and orientation_of({"exif": content}) != UPRIGHT:
                return None
        elif marker == SCAN:
            return field if content[:1] == bytes([components]) else None
        elif marker not in _OF_NO_MATTER:
            return None
    return None
