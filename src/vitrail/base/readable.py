"""Numbers and settings for people to read: 86.57 M, 1.50 GiB, the first names of a long list."""

import json
from typing import Any

MOST_LISTED = 5


def counted(number: int | float, unit: str = "") -> str:
    """Write 86567656 as 86.57 M."""
    for size, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:.2f} {letter}{unit}"
    return f"{number:.0f} {unit}".rstrip()


def in_bytes(number: int | float) -> str:
    """Write bytes with binary units."""
    for size, name in ((2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if number >= size:
            return f"{number / size:.2f} {name}"
    return f"{number:.0f} B"


def value_text(value: Any) -> str:
    """Write a setting or a weight: the first values of a long list, as many digits of a number as float32 has."""
    if isinstance(value, list) and (len(value) > MOST_LISTED or all(isinstance(one, str) for one in value)):
        more = ["..."] * (len(value) > MOST_LISTED)
        return f"{len(value)}: " + ", ".join([*map(value_text, value[:MOST_LISTED]), *more]) if value else "none"
    if isinstance(value, float):
        return f"{value:.9g}"
    return value if isinstance(value, str) else json.dumps(value)
