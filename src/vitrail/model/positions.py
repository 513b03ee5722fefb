"""Positions of patches: every kind of App. D.4, and how a table is resized for another grid (Sec. 3.2).

| kind       | parameters                                         | paper             |
|------------|----------------------------------------------------|-------------------|
| none       | -                                                  | D.4, no position  |
| learned-1d | one row for each token                             | Eq. 1, the default|
| learned-2d | X and Y tables of D/2 each, and a class entry      | D.4               |
| sincos-2d  | none: fixed sines and cosines of the row and column| -                 |
| relative   | one row for each offset, as keys inside attention  | D.4               |

The first four are added to tokens: at the input, at every layer with a table each, or at every layer with one
shared table. Relative positions are in every block's attention (`attention.py`), a table each.
"""

import re
from collections.abc import Callable
from typing import Any, Literal, get_args

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from vitrail.base.errors import ConfigError, did_you_mean
from vitrail.base.shapes import PositionTable
from vitrail.model.patches import Size

PositionKind = Literal["none", "learned-1d", "learned-2d", "sincos-2d", "relative"]
Placement = Literal["input", "every-layer", "every-layer-shared"]
ResizeWay = Literal["google", "timm", "timm-npz", "huggingface", "torchvision", "dino"]

_TABLE = re.compile(r"(embedding|encoder)\.positions\.(\d+\.)?(?P<part>table|x|y)$")

# How each library interpolates positions when the grid changes: (mode, align_corners, antialias). DINO and DINOv2 have
# the interpolation of Hugging Face, but place the cells by a factor from a new side that is a tenth of a cell longer.
_INTERPOLATION: dict[str, tuple[str, bool, bool]] = {
    "google": ("bilinear", True, False),
    "timm": ("bicubic", False, True),
    "timm-npz": ("bilinear", False, False),
    "huggingface": ("bicubic", False, False),
    "torchvision": ("bicubic", True, False),
    "dino": ("bicubic", False, False),
}
_DINO_SURPLUS = 0.1


class Learned1d(nn.Module):
    """One learned vector for each token, the class token first (Eq. 1)."""

    def __init__(self, dim: int, grid: Size, *, class_entry: bool) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.empty(grid[0] * grid[1] + class_entry, dim))

    def forward(self) -> PositionTable:
        """Return E_pos."""
        return self.table


class Learned2d(nn.Module):
    """A learned half for the column and a learned half for the row (App. D.4).

    The paper gives the class token no coordinates; here it has an entry of its own, as in Eq. 1.
    """

    def __init__(self, dim: int, grid: Size, *, class_entry: bool) -> None:
        super().__init__()
        rows, columns = grid
        self.x = nn.Parameter(torch.empty(columns, dim // 2))
        self.y = nn.Parameter(torch.empty(rows, dim // 2))
        self.class_entry = nn.Parameter(torch.empty(1, dim)) if class_entry else None

    def forward(self) -> PositionTable:
        """Concatenate X and Y for each cell of the grid, in raster order."""
        rows, columns = len(self.y), len(self.x)
        x = self.x.expand(rows, -1, -1)
        y = self.y.unsqueeze(1).expand(-1, columns, -1)
        table = torch.cat([x, y], dim=2).flatten(0, 1)
        return table if self.class_entry is None else torch.cat([self.class_entry, table])


class SinCos2d(nn.Module):
    """Fixed sines and cosines of the cell's column and row; the class token's entry is zero."""

    table: Tensor

    def __init__(self, dim: int, grid: Size, *, class_entry: bool) -> None:
        super().__init__()
        self.dim, self.grid, self.class_entry = dim, grid, class_entry
        tokens = grid[0] * grid[1] + class_entry
        self.register_buffer("table", torch.empty(tokens, dim), persistent=False)

    def forward(self) -> PositionTable:
        """Return the fixed table, which `init.py` has filled."""
        return self.table


def make_positions(kind: PositionKind, dim: int, grid: Size, *, class_entry: bool) -> nn.Module | None:
    """Build the table of one kind, or None for the kinds that add nothing to tokens."""
    match kind:
        case "learned-1d":
            return Learned1d(dim, grid, class_entry=class_entry)
        case "learned-2d":
            return Learned2d(dim, grid, class_entry=class_entry)
        case "sincos-2d":
            return SinCos2d(dim, grid, class_entry=class_entry)
        case _:
            return None


def sincos_2d(dim: int, grid: Size, *, class_entry: bool) -> PositionTable:
    """Compute [sin x w, cos x w, sin y w, cos y w] with D/4 frequencies w from 1 to 1/10000."""
    rows, columns = grid
    frequencies = 10_000.0 ** -torch.linspace(0, 1, dim // 4, dtype=torch.float64)
    x = torch.arange(columns).repeat(rows)[:, None] * frequencies
    y = torch.arange(rows).repeat_interleave(columns)[:, None] * frequencies
    table = torch.cat([x.sin(), x.cos(), y.sin(), y.cos()], dim=1).float()
    return torch.cat([table.new_zeros(1, dim), table]) if class_entry else table


def resize_positions(
    table: Float[Tensor, "tokens dim"], old: Size, new: Size, *, way: ResizeWay = "google"
) -> Float[Tensor, "resized dim"]:
    """Interpolate positions in 2-D by location, keeping entries before the grid (Sec. 3.2).

    `way` names the library whose numbers to match: the reference release aligns the corner entries.
    """
    if way not in get_args(ResizeWay):
        raise ConfigError(
            f"there is no way {way!r} of resizing positions; choose one of {', '.join(get_args(ResizeWay))}."
            + did_you_mean(way, get_args(ResizeWay))
        )
    extra = len(table) - old[0] * old[1]
    if extra not in (0, 1):
        raise ConfigError(
            f"a table of {len(table)} positions does not belong to a grid of {old[0]}x{old[1]}, "
            f"which has {old[0] * old[1]} or, with a class entry, {old[0] * old[1] + 1}; pass the table's own grid."
        )
    if old == new:
        return table
    mode, align_corners, antialias = _INTERPOLATION[way]
    cells = table[extra:].T.reshape(1, -1, *old)
    place: dict[str, Any] = {"size": new}
    if way == "dino":
        place = {"scale_factor": [(side + _DINO_SURPLUS) / own for side, own in zip(new, old, strict=True)]}
    cells = F.interpolate(cells.float(), **place, mode=mode, align_corners=align_corners, antialias=antialias)
    return torch.cat([table[:extra], cells[0].flatten(1).T.to(table.dtype)])


def resize_axis(
    table: Float[Tensor, "cells half"], new: int, *, way: ResizeWay = "google"
) -> Float[Tensor, "new half"]:
    """Interpolate the X or the Y table of `Learned2d` along its own axis, the same way as a grid."""
    return resize_positions(table, (len(table), 1), (new, 1), way=way)


def resize_relative(table: Float[Tensor, "offsets dim"], old: Size, new: Size) -> Float[Tensor, "resized dim"]:
    """Interpolate offset embeddings for another grid, by the displacement that each raster offset stands for.

    An offset o of a grid with W columns is a displacement of (round(o / W), the rest) in rows and columns. The same
    displacement, measured in the old grid's cells, lies between four old offsets: interpolate those bilinearly.
    """
    extra = (len(table) + 1) // 2 - old[0] * old[1]
    if extra not in (0, 1) or len(table) % 2 == 0:
        raise ConfigError(
            f"a table of {len(table)} offsets does not belong to a grid of {old[0]}x{old[1]}, "
            f"which has {2 * old[0] * old[1] - 1} or, with a class token, {2 * old[0] * old[1] + 1}."
        )
    if old == new:
        return table
    reach = new[0] * new[1] + extra - 1
    offsets = torch.arange(-reach, reach + 1, device=table.device)
    rows = torch.round(offsets / new[1])
    y, x = rows * old[0] / new[0], (offsets - rows * new[1]) * old[1] / new[1]
    top, left = y.floor(), x.floor()
    centre = len(table) // 2
    resized = torch.zeros(len(offsets), table.shape[1], device=table.device)
    for row, row_weight in ((top, 1 - (y - top)), (top + 1, y - top)):
        for column, column_weight in ((left, 1 - (x - left)), (left + 1, x - left)):
            index = (row * old[1] + column + centre).long().clamp(0, len(table) - 1)
            resized += (row_weight * column_weight)[:, None] * table[index].float()
    return resized.to(table.dtype)


def resize_for_grid(name: str, old: Size, new: Size, *, way: ResizeWay) -> Callable[[Tensor], Tensor] | None:
    """Return how a tensor of a Vision Transformer changes with the grid, by its name; None where it does not."""
    table = _TABLE.match(name)
    match table and table["part"]:
        case "table":
            return lambda tensor: resize_positions(tensor, old, new, way=way).contiguous()
        case "x":
            return lambda tensor: resize_axis(tensor, new[1], way=way).contiguous()
        case "y":
            return lambda tensor: resize_axis(tensor, new[0], way=way).contiguous()
    return (lambda tensor: resize_relative(tensor, old, new)) if name.endswith(".attention.offsets") else None
