"""Sizes that a file does not state, told from its tensors and from what the caller knows."""

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

from vitrail.base.errors import CheckpointError
from vitrail.model.patches import Size
from vitrail.model.variants import SIZES

Hints = Mapping[str, Any]
"""Fields of the config that the caller gave."""


def count_blocks(names: Iterable[str], pattern: str) -> int:
    """Count the different numbers that the pattern's group takes; a gap shows up later as a missing tensor."""
    matcher = re.compile(pattern)
    return len({found[1] for name in names if (found := matcher.match(name))})


def tell_stages(names: Iterable[str], pattern: str) -> tuple[int, ...]:
    """Count the units of each stage, given a pattern with a group for each."""
    matcher = re.compile(pattern)
    found = {(match[1], match[2]) for name in names if (match := matcher.match(name))}
    stages = sorted({stage for stage, _ in found}, key=lambda stage: (len(stage), stage))
    return tuple(sum(stage == one for one, _ in found) for stage in stages)


def tell_heads(dim: int, depth: int, mlp_dim: int, hints: Hints, origin: str) -> tuple[int, tuple[str, ...]]:
    """Return the number of heads where no tensor shows it, and what to say about it.

    What the caller knows comes first, then the table of published sizes (H has 80 dimensions for each head), then
    the usual 64 dimensions for each.
    """
    if "num_heads" in hints:
        return hints["num_heads"], ()
    for name, size in SIZES.items():
        if (size.dim, size.depth, size.mlp_dim) == (dim, depth, mlp_dim):
            return size.num_heads, (f"the file does not say its number of heads; {size.num_heads} as in ViT-{name}.",)
    if dim % 64 == 0:
        note = f"the file does not say its number of heads; {dim // 64} of 64 dimensions each were assumed: "
        return dim // 64, (note + "give num_heads if that is wrong.",)
    raise CheckpointError(
        f"{origin} does not say how many attention heads it has, and {dim} is not a multiple of the usual 64; "
        "give num_heads."
    )


def tell_grid(count: int, cell: Size, *, class_token: bool, hints: Hints, origin: str) -> tuple[Size, bool]:
    """Return the image size that a table of positions is for, and whether the class token has an entry in it.

    `cell` is the pixels under one position. Where the caller's image size implies the table's own length, the table
    is taken as it is; else it must belong to a square.
    """
    asked = hints.get("image_size")
    if asked is not None and asked[0] % cell[0] == 0 and asked[1] % cell[1] == 0:
        extra = count - (asked[0] // cell[0]) * (asked[1] // cell[1])
        if extra in (0, 1):
            return asked, bool(extra)
    for extra in (1, 0) if class_token else (0, 1):
        side = math.isqrt(max(count - extra, 0))
        if side > 0 and side * side == count - extra:
            return (side * cell[0], side * cell[1]), bool(extra)
    raise CheckpointError(
        f"{origin} has {count} positions, which is no square grid"
        + (" with or without an entry for the class token" if class_token else "")
        + f"; give the image_size (height, width) that it was made for, in steps of {cell[0]}x{cell[1]} pixels."
    )
