"""Patches become tokens: E, the class token and positions (Eq. 1)."""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from vitrail.base.shapes import FeatureMap, Patches, PatchPixels, PositionTable, Tokens
from vitrail.model.config import ViTConfig
from vitrail.model.patches import Size, patch_grid, patchify
from vitrail.model.positions import make_positions, resize_positions

Kept = Int[Tensor, "batch kept"]


class Embedding(nn.Module):
    """z_0 = [x_class; x_p^1 E; ...; x_p^N E] + E_pos."""

    def __init__(self, config: ViTConfig) -> None:
        super().__init__()
        channels = config.channels if config.backbone is None else config.backbone.channels
        self.patch_size, self.grid, self.resize = config.patch_size, config.grid, config.position_resize
        self.projection = nn.Linear(channels * math.prod(config.patch_size), config.dim)
        self.class_token = nn.Parameter(torch.empty(1, config.dim)) if config.class_token else None
        self.positions = (
            make_positions(config.positions, config.dim, config.grid, class_entry=bool(config.class_token))
            if config.position_placement == "input"
            else None
        )
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, features: FeatureMap, *, drop: float = 0.0) -> Tokens:
        """Embed an image, or the feature map of a hybrid; `drop` leaves out that part of each image's patches."""
        pixels = patchify(features, self.patch_size)
        grid = patch_grid((features.shape[2], features.shape[3]), self.patch_size)
        if not drop:
            return self.assemble(self.projection(pixels), grid=grid)
        kept = random_patches(pixels, drop)
        return self.assemble(self.projection(pick(pixels, kept)), grid=grid, kept=kept)

    def project(self, features: FeatureMap) -> Patches:
        """Compute x_p E: every patch in one matrix product."""
        return self.projection(patchify(features, self.patch_size))

    def assemble(self, patches: Patches, *, grid: Size | None = None, kept: Kept | None = None) -> Tokens:
        """Prepend the class token, add positions, drop out; `kept` tells which patches of the grid these are."""
        tokens = patches
        if self.class_token is not None:
            tokens = torch.cat([self.class_token.expand(patches.shape[0], 1, -1), patches], dim=1)
        if self.positions is not None:
            tokens = tokens + self.table(grid or self.grid, kept)
        return self.dropout(tokens)

    def table(self, grid: Size, kept: Kept | None) -> PositionTable | Tokens:
        """Return E_pos, interpolated for images of another size, or its rows for some patches of each image."""
        assert self.positions is not None  # noqa: S101 - asked only then
        table = self.positions()
        if grid != self.grid:
            table = resize_positions(table, self.grid, grid, way=self.resize)
        if kept is None:
            return table
        first = 0 if self.class_token is None else 1
        rows = table[first:][kept]  # batch kept dim
        return torch.cat([table[:first].expand(kept.shape[0], first, -1), rows], dim=1)


def random_patches(pixels: PatchPixels, drop: float) -> Kept:
    """Draw the patches that each image keeps, at least one, from torch's global generator."""
    batch, patches, _ = pixels.shape
    many = max(round(patches * (1 - drop)), 1)
    return torch.rand(batch, patches, device=pixels.device).argsort(dim=1)[:, :many]


def pick(pixels: PatchPixels, kept: Kept) -> Float[Tensor, "batch kept pixels"]:
    """Take the kept patches of each image."""
    return pixels.gather(1, kept[:, :, None].expand(-1, -1, pixels.shape[2]))
