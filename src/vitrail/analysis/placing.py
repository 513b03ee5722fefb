"""A map of a network's input, laid back over the whole image: the crop and the resize of preprocessing undone."""

import numpy as np
from jaxtyping import Bool, Float

from vitrail.data.preprocessing import Preprocessing
from vitrail.model.patches import Size

Heat = Float[np.ndarray, "rows columns"]
Placed = Float[np.ndarray, "height width"]


def place(heat: Heat, preprocessing: Preprocessing, image_size: Size, shown: Size) -> Placed:
    """Interpolate a map over an image of `image_size` that is shown with `shown` pixels; NaN where it was cropped off.

    The map covers the network's input evenly, whatever its grid; values belong to the centres of its cells.
    """
    top, left, height, width = preprocessing.window(*image_size)
    rows, inside_rows = _weights(heat.shape[0], shown[0], top, height)
    columns, inside_columns = _weights(heat.shape[1], shown[1], left, width)
    placed = rows @ heat @ columns.T
    placed[~(inside_rows[:, None] & inside_columns)] = np.nan
    return placed


def _weights(
    cells: int, pixels: int, start: float, length: float
) -> tuple[Float[np.ndarray, "pixel cell"], Bool[np.ndarray, "pixel"]]:
    """Return how much each cell counts for each pixel along one side, and which pixels are inside of the window."""
    where = ((np.arange(pixels) + 0.5) / pixels - start) / length
    centre = np.clip(where * cells - 0.5, 0, cells - 1)
    before = np.minimum(np.floor(centre).astype(int), max(cells - 2, 0))
    share = centre - before
    weights = np.zeros((pixels, cells))
    weights[np.arange(pixels), before] = 1 - share
    if cells > 1:
        weights[np.arange(pixels), before + 1] = share
    return weights, (where >= 0) & (where < 1)
