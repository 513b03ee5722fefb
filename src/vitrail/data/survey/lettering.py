"""Text in pictures, whatever script a class name is written in."""

import unicodedata
from functools import cache

from PIL import ImageFont

Font = ImageFont.FreeTypeFont | ImageFont.ImageFont

# Fonts of the system that know more letters than Pillow's own, tried when a name needs them.
WIDER = (
    "DejaVuSans.ttf",
    "NotoSansCJK-Regular.ttc",
    "NotoSans-Regular.ttf",
    "Arial Unicode.ttf",
    "Arial.ttf",
    "msgothic.ttc",
    "FreeSans.ttf",
)
MISSING = "\uffff"  # no letter: every font shows what it shows for letters that it lacks


def lettering(text: str, size: int) -> tuple[str, Font]:
    """Return what can be drawn of a text, and the font for it.

    Pillow's own font knows the letters of English. For others the fonts of the system are tried, then accents are left
    out, and what no font can draw becomes a question mark.
    """
    shown = " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
    own = _own(size)
    if _draws(own, shown):
        return shown, own
    for font in _wider(size):
        if _draws(font, shown):
            return shown, font
    plain = "".join(letter for letter in unicodedata.normalize("NFKD", shown) if not unicodedata.combining(letter))
    return "".join(letter if _draws(own, letter) else "?" for letter in plain), own


def fit(text: str, size: int, width: int) -> tuple[str, Font]:
    """Return a text cut to a width in pixels, with dots in the middle, where the ends of names still tell."""
    shown, font = lettering(text, size)
    if font.getlength(shown) <= width:
        return shown, font
    for keep in range(len(shown) - 1, 0, -1):
        tail = keep // 3
        cut = f"{shown[: keep - tail].rstrip()}...{shown[len(shown) - tail :].lstrip()}"
        if font.getlength(cut) <= width:
            return cut, font
    return "", font


@cache
def _own(size: int) -> Font:
    return ImageFont.load_default(size=size)


@cache
def _wider(size: int) -> tuple[Font, ...]:
    found: list[Font] = []
    for name in WIDER:
        try:
            found.append(ImageFont.truetype(name, size))
        except OSError:  # not on this system
            continue
    return tuple(found)


def _draws(font: Font, text: str) -> bool:
    """Tell whether a font has every letter of a text: one that is missing looks like one that cannot exist."""
    missing = _look(font, MISSING)
    return all(letter == " " or _look(font, letter) != missing for letter in set(text))


@cache
def _look(font: Font, letter: str) -> tuple[tuple[int, int], bytes]:
    mask = font.getmask(letter, mode="1")
    return mask.size, bytes(mask)
