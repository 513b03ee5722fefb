"""Rotary positions in two dimensions: queries and keys of patches are turned by angles of their row and column.

The D_h values of a head are D_h / 2 pairs, value j with value j + D_h / 2. The first half of the pairs turns with the
row, the second with the column, from one radian a coordinate down to one in `base` of that. The class token and
registers have no place, so they are not turned. Nothing is learned, and any grid has its angles.
"""

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

import torch
from jaxtyping import Float
from torch import Tensor, nn

from vitrail.base.errors import ConfigError
from vitrail.base.shapes import KeptPatches, Queries
from vitrail.model.checks import check_choice, check_size
from vitrail.model.patches import Size

Coordinates = Literal["centred", "cells"]


@dataclass(frozen=True, kw_only=True)
class RotaryConfig:
    """How the row and the column of a patch become angles."""

    base: float = 100.0
    """How many times slower the slowest pair turns than one radian a coordinate, in the limit (DINOv3: 100)."""
    coordinates: Coordinates = "centred"
    """`centred` runs from -2 pi to 2 pi over an image of any size (DINOv3), `cells` counts cells (EVA-02)."""
    reference: Size | None = None
    """With `cells`: rows and columns that every grid is stretched to; None counts the cells as they are."""
    offset: float = 0.0
    """With `cells`: the coordinate of the first cell, before it is stretched."""

    def __post_init__(self) -> None:
        """Refuse what gives no angles."""
        check_choice("rotary.coordinates", self.coordinates, get_args(Coordinates))
        if not (math.isfinite(self.base) and self.base > 0 and math.isfinite(self.offset)):
            raise ConfigError(
                f"rotary.base is {self.base} and rotary.offset {self.offset}, but both must be finite, and the base "
                "above 0."
            )
        if self.reference is not None:
            check_size("rotary.reference", self.reference)
        if self.coordinates == "centred" and (self.reference is not None or self.offset):
            raise ConfigError(
                "rotary.reference and rotary.offset place cells, but rotary.coordinates is 'centred'; "
                "leave them out or choose 'cells'."
            )


class Rotation(NamedTuple):
    """The cosine and sine of every angle, for all images or for each."""

    cosine: Float[Tensor, "images 1 patch head_dim"]
    sine: Float[Tensor, "images 1 patch head_dim"]


class Rotary(nn.Module):
    """The angles of a model's own grid, kept, and of any other, computed when it is met."""

    table: Tensor

    def __init__(self, config: RotaryConfig, head_dim: int, grid: Size) -> None:
        super().__init__()
        self.config, self.head_dim, self.grid = config, head_dim, grid
        self.register_buffer("table", torch.empty(2, grid[0] * grid[1], head_dim), persistent=False)

    def forward(self, grid: Size, kept: KeptPatches | None = None) -> Rotation:
        """Return the angles of all patches of a grid, or of those that each image keeps."""
        table = self.table if grid == self.grid else self.compute(grid).to(self.table)
        cosine, sine = table[:, None] if kept is None else table[:, kept]
        return Rotation(cosine.unsqueeze(1), sine.unsqueeze(1))

    def compute(self, grid: Size) -> Float[Tensor, "2 patch head_dim"]:
        """Compute the cosines and sines of a grid, which `init.py` fills the table with."""
        angles = rotary_angles(self.config, self.head_dim, grid).repeat(1, 2)
        return torch.stack([angles.cos(), angles.sin()]).float()


def rotary_angles(config: RotaryConfig, head_dim: int, grid: Size) -> Float[Tensor, "patch pair"]:
    """Compute the angle of every pair for every patch, in raster order: those of the row, then of the column."""
    speeds = config.base ** -(torch.arange(head_dim // 4, dtype=torch.float64) / (head_dim // 4))
    reference = config.reference or grid
    rows, columns = (
        _coordinates(config, cells, span)[:, None] * speeds for cells, span in zip(grid, reference, strict=True)
    )
    return torch.cat([rows.repeat_interleave(grid[1], dim=0), columns.repeat(grid[0], 1)], dim=1)


def _coordinates(config: RotaryConfig, cells: int, span: int) -> Float[Tensor, " cell"]:
    """Return the coordinate of every row, or of every column."""
    numbers = torch.arange(cells, dtype=torch.float64)
    if config.coordinates == "centred":
        return 2 * math.pi * (2 * (numbers + 0.5) / cells - 1)
    return (numbers + config.offset) * span / cells


def rotate(heads: Queries, rotation: Rotation) -> Queries:
    """Turn the queries or keys of patches, which come last, and leave the tokens before them."""
    prefix = heads.shape[2] - rotation.sine.shape[2]
    patches = heads[:, :, prefix:]
    first, second = patches.chunk(2, dim=3)
    turned = patches * rotation.cosine + torch.cat([-second, first], dim=3) * rotation.sine
    turned = turned.to(heads.dtype)  # angles stay in float32 where weights are of another type
    return torch.cat([heads[:, :, :prefix], turned], dim=2) if prefix else turned
