"""Sizes that a file does not state, inferred from its tensors and from what the caller knows."""

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from vitrail.base.errors import CheckpointError
from vitrail.data.preprocessing import PRESETS
from vitrail.model.patches import Size
from vitrail.model.variants import SIZES

Hints = Mapping[str, Any]
"""Fields of the config that the caller gave."""


def count_blocks(names: Iterable[str], pattern: str) -> int:
    """Count the different numbers that the pattern's group takes; a gap shows up later as a missing tensor."""
    matcher = re.compile(pattern)
    return len({match[1] for name in names if (match := matcher.match(name))})


def tell_stages(names: Iterable[str], pattern: str) -> tuple[int, ...]:
    """Count the units of each stage, given a pattern with a group for each."""
    matcher = re.compile(pattern)
    units = {(match[1], match[2]) for name in names if (match := matcher.match(name))}
    stages = sorted({stage for stage, _ in units}, key=lambda stage: (len(stage), stage))
    return tuple(sum(stage == one for one, _ in units) for stage in stages)


# Width, depth and MLP of models that are published elsewhere than in the paper -> heads.
_HEADS = {(1152, 27, 4304): 16, (1536, 40, 6144): 16}


class Grid(NamedTuple):
    """What a table of positions is for."""

    image_size: Size
    extra: int
    """Its entries before those of the grid."""
    trim: bool
    """Whether the images have more pixels than the patches fill."""


def tell_heads(dim: int, depth: int, mlp_dim: int, hints: Hints, origin: str) -> tuple[int, tuple[str, ...]]:
    """Return the number of heads where no tensor shows it, and notes about it.

    What the caller knows comes first, then the table of published sizes (H has 80 dimensions for each head).
    """
    if "num_heads" in hints:
        return hints["num_heads"], ()
    known = {(size.dim, size.depth, size.mlp_dim): size.num_heads for size in SIZES.values()} | _HEADS
    heads = known.get((dim, depth, mlp_dim))
    if heads is None:
        raise CheckpointError(
            f"{origin} does not state how many attention heads it has, and no published model has its sizes ({dim} "
            f"wide, {depth} blocks, MLPs of {mlp_dim}); give num_heads."
        )
    return heads, (f"the file does not state its number of heads; {heads} as in published models of its size.",)


def tell_grid(
    count: int, cell: Size, *, extras: Iterable[int], hints: Hints, origin: str, sizes: Iterable[Size] = ()
) -> Grid:
    """Return what a table of positions is for.

    `cell` is the pixels under one position, and `extras` the numbers of entries before the grid that there may be, the
    likeliest first. Where one of `sizes`, which the file states, or else the caller's image size implies the table's
    own length, the table is taken as it is; else it must belong to a square.
    """
    extras = list(dict.fromkeys(extras))
    for height, width in [*sizes, *([hints["image_size"]] if "image_size" in hints else [])]:
        extra = count - (height // cell[0]) * (width // cell[1])
        if extra in extras and extra < count:
            return Grid((height, width), extra, bool(height % cell[0] or width % cell[1]))
    for extra in extras:
        side = math.isqrt(max(count - extra, 0))
        if side > 0 and side * side == count - extra:
            return Grid((side * cell[0], side * cell[1]), extra, False)
    raise CheckpointError(
        f"{origin} has {count} positions, which is not a square grid"
        + (" with or without entries for the tokens before it" if any(extras) else "")
        + f"; give the image_size (height, width) that it was made for, in steps of {cell[0]}x{cell[1]} pixels."
    )


def ask_pixels(origin: str, why: str) -> str:
    """Write the sentence that asks how images become the input of a model."""
    return (
        f"{origin} does not state how images become its input, and {why}; give `architecture`, which is one of "
        f"{', '.join(PRESETS)}."
    )


def state_size(settings: Mapping[str, Any], name: str) -> list[Size]:
    """Return the image size that a JSON table states, as one number or as two, if it does."""
    size = settings.get(name)
    sides = size if isinstance(size, list | tuple) else (size, size)
    good = len(sides) == 2 and all(type(side) is int and side > 0 for side in sides)
    return [(sides[0], sides[1])] if good else []
