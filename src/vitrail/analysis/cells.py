"""An image as a grid of cells that can be covered: the patches of a Vision Transformer, or squares for any network."""

from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from vitrail.base.shapes import PixelBatch
from vitrail.data.preprocessing import Preprocessing
from vitrail.model.family import ModelConfig
from vitrail.model.patches import Size

HeatMaps = Float[Tensor, "batch rows columns"]
"""How much each place of an image counts, on whatever grid a method has."""
CellValues = Float[Tensor, "batch cell"]
Colour = tuple[int, ...]

FEWEST, MOST, SIDE = 7, 14, 4
"""A network without patches gets cells of at least 4 pixels a side: 7 to 14 along the longer side of its input."""


@dataclass(frozen=True, kw_only=True)
class Cells:
    """The cells of a network's input, in raster order."""

    image_size: Size
    """Height and width of the input, in pixels."""
    grid: Size
    """Rows and columns of cells."""

    def __len__(self) -> int:
        """Count the cells."""
        return self.grid[0] * self.grid[1]

    @cached_property
    def index(self) -> Int[Tensor, "height width"]:
        """The cell that each pixel belongs to."""
        (height, width), (rows, columns) = self.image_size, self.grid
        row, column = torch.arange(height) * rows // height, torch.arange(width) * columns // width
        return row[:, None] * columns + column

    def cover(self, pixels: PixelBatch, covered: Bool[Tensor, "batch cell"], colour: Colour) -> PixelBatch:
        """Paint the covered cells of each image in one colour."""
        paint = torch.tensor(colour, dtype=torch.uint8, device=pixels.device)[:, None, None]
        mask = covered[:, self.index.to(covered.device)].unsqueeze(1).to(pixels.device)
        return torch.where(mask, paint, pixels)

    def means(self, maps: HeatMaps) -> CellValues:
        """Return the mean of each map over each cell; a coarser map is interpolated first."""
        if tuple(maps.shape[1:]) == self.grid:
            return maps.flatten(1)
        if tuple(maps.shape[1:]) != self.image_size:
            maps = torch.nn.functional.interpolate(
                maps[:, None], self.image_size, mode="bilinear", align_corners=False
            ).squeeze(1)
        index = self.index.flatten().to(maps.device)
        sums = maps.new_zeros(len(maps), len(self)).index_add_(1, index, maps.flatten(1))
        return sums / torch.bincount(index, minlength=len(self)).to(sums.dtype)


def cells_for(config: ModelConfig | None, image_size: Size) -> Cells:
    """Return the patches of a model, or squares where it has none, or where nothing is known of it."""
    if config is not None and config.grid is not None and config.image_size == image_size:
        return Cells(image_size=image_size, grid=config.grid)
    longer = max(image_size)
    side = longer / min(max(longer // SIDE, FEWEST), MOST, longer)
    return Cells(image_size=image_size, grid=(max(round(image_size[0] / side), 1), max(round(image_size[1] / side), 1)))


def mean_colour(preprocessing: Preprocessing) -> Colour:
    """Return the colour that becomes nearest to 0 in a network's input."""
    return tuple(min(max(round(255 * mean), 0), 255) for mean in preprocessing.mean)
