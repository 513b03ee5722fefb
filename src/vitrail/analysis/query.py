"""What one patch attends to: a row of A (Eq. 6), laid out as the patches are."""

import torch

from vitrail.analysis.cells import HeatMaps
from vitrail.analysis.rollout import on_grid
from vitrail.base.errors import ConfigError
from vitrail.base.shapes import Images
from vitrail.model.contract import Model
from vitrail.model.trace import Selection


@torch.inference_mode()
def patch_attention(model: Model, images: Images, patch: int, *, block: int = -1, head: int | None = None) -> HeatMaps:
    """Return what a patch, numbered from 0 in raster order, looks at in one block: one head, or the mean of all."""
    rows, columns = model.config.grid
    if not 0 <= patch < rows * columns:
        raise ConfigError(f"patch is {patch}, but the model has {rows * columns}: 0 to {rows * columns - 1}.")
    heads: Selection = "all" if head is None else [head]
    token = model.config.num_prefix + patch
    encoded = model.encode(
        images, attention=[block], heads=heads, reduce=lambda weights: weights[:, :, token].mean(dim=1)
    )
    (attention,) = encoded.attention.values()
    return on_grid(attention, model.config.num_prefix, model.config.grid)
