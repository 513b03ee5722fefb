"""A map laid over an image in colours, and images side by side with a title above each."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, UInt8
from PIL import Image, ImageDraw, ImageFont

from vitrail.base.shapes import Pixels

Picture = UInt8[np.ndarray, "rows columns 3"]
Placed = Float[np.ndarray, "rows columns"]

MOST_SIDE, FEWEST_SIDE = 512, 224
"""Pixels of the longer side of a picture: larger images shrink, smaller ones grow by whole factors."""
STRONG = 0.995
"""Of a map with signs, this share of the values has room on the scale; the strongest few would hide the others."""
UNSEEN = 0.35
"""Brightness of what preprocessing cut off."""
TITLE, GAP = 22, 8
"""Pixels of the line of a title, and between images."""

# From weak to strong: samples of the colour map inferno, which is as clear in grey, and orange against blue.
_HEAT = np.array([(20, 11, 52), (132, 32, 107), (229, 92, 48), (246, 215, 70)], dtype=float)
_FOR, _AGAINST = np.array((245, 130, 30.0)), np.array((40, 120, 245.0))


def shown_size(height: int, width: int, most: int = MOST_SIDE) -> tuple[int, int]:
    """Return the size in which an image is shown, with its own proportions."""
    longer = max(height, width)
    factor = most / longer if longer > most else max(min(FEWEST_SIDE, most) // longer, 1)
    return max(round(height * factor), 1), max(round(width * factor), 1)


def picture_of(pixels: Pixels, most: int = MOST_SIDE) -> Picture:
    """Return an image as it is shown, in colour; an image that is neither grey nor colour shows its first channel."""
    array = pixels.numpy(force=True)
    array = array[:3] if array.shape[0] >= 3 else np.repeat(array[:1], 3, axis=0)
    image = Image.fromarray(np.ascontiguousarray(array.transpose(1, 2, 0)), "RGB")
    height, width = shown_size(image.height, image.width, most)
    way = Image.Resampling.LANCZOS if width < image.width else Image.Resampling.NEAREST  # pixels of a small one show
    return np.asarray(image.resize((width, height), way))


def overlay(picture: Picture, heat: Placed, *, signed: bool) -> Picture:
    """Colour an image by a map of the same size: the stronger, the more colour; dark where the map is not a number.

    A map without signs goes from its least to its greatest value. Of one with signs, orange is above 0, blue below.
    """
    grey = picture.astype(float) @ (0.299, 0.587, 0.114)
    base = 0.6 * grey[..., None] + 0.15 * picture
    seen = ~np.isnan(heat)
    strength = np.zeros(heat.shape)
    strength[seen] = _signed_strength(heat[seen]) if signed else _strength(heat[seen])
    colours = np.where(strength[..., None] > 0, _FOR, _AGAINST) if signed else _colours(strength)
    share = (0.85 * np.abs(strength) ** 0.75)[..., None]
    mixed = (1 - share) * base + share * colours
    mixed[~seen] = UNSEEN * base[~seen]
    return np.rint(mixed).astype(np.uint8)


def side_by_side(pictures: Sequence[Picture], titles: Sequence[str]) -> Image.Image:
    """Put pictures of one height beside each other, each below its title."""
    height = max(picture.shape[0] for picture in pictures)
    width = sum(picture.shape[1] + GAP for picture in pictures) - GAP
    sheet = Image.new("RGB", (width, height + TITLE), "white")
    draw, font, left = ImageDraw.Draw(sheet), _font(), 0
    for picture, title in zip(pictures, titles, strict=True):
        draw.text((left + 2, 3), _fitting(title, font, picture.shape[1] - 4), fill="#1c1e24", font=font)
        sheet.paste(Image.fromarray(picture), (left, TITLE))
        left += picture.shape[1] + GAP
    return sheet


def _strength(values: Float[np.ndarray, "value"]) -> Float[np.ndarray, "value"]:
    low, high = values.min(initial=np.inf), values.max(initial=-np.inf)
    return (values - low) / (high - low) if high > low else np.zeros_like(values)


def _signed_strength(values: Float[np.ndarray, "value"]) -> Float[np.ndarray, "value"]:
    if not values.size:
        return values
    most = np.quantile(np.abs(values), STRONG) or np.abs(values).max()
    return np.clip(values / most, -1, 1) if most > 0 else np.zeros_like(values)


def _colours(strength: Placed) -> Float[np.ndarray, "rows columns 3"]:
    stops = np.linspace(0, 1, len(_HEAT))
    return np.stack([np.interp(strength, stops, channel) for channel in _HEAT.T], axis=-1)


def _font() -> ImageFont.FreeTypeFont:
    """Return the font that comes with matplotlib, which has most alphabets."""
    import matplotlib as mpl

    return ImageFont.truetype(f"{mpl.get_data_path()}/fonts/ttf/DejaVuSans.ttf", 13)


def _fitting(title: str, font: ImageFont.FreeTypeFont, width: int) -> str:
    """Shorten a title that is wider than its picture."""
    if font.getlength(title) <= width:
        return title
    while title and font.getlength(f"{title}\N{HORIZONTAL ELLIPSIS}") > width:
        title = title[:-1]
    return f"{title}\N{HORIZONTAL ELLIPSIS}"
