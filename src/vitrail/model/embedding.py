"""Patches become tokens: E, the class token, positions, and further tokens where there are any (Eq. 1)."""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Generator, Tensor, nn

from vitrail.base.errors import ConfigError
from vitrail.base.products import Linear
from vitrail.base.shapes import FeatureMap, KeptPatches, KeptTokens, Patches, PatchPixels, PositionTable, Tokens
from vitrail.model.config import ViTConfig
from vitrail.model.corruption import Corruption, corrupt
from vitrail.model.patches import Size, patch_grid, patchify
from vitrail.model.positions import make_positions, resize_positions
from vitrail.model.trace import NOTHING, Recorder
from vitrail.model.units import Unit


class Embedding(nn.Module):
    """z_0 = [x_class; x_p^1 E; ...; x_p^N E] + E_pos."""

    def __init__(self, config: ViTConfig) -> None:
        super().__init__()
        channels = config.channels if config.backbone is None else config.backbone.channels
        self.patch_size, self.grid, self.resize = config.patch_size, config.grid, config.position_resize
        self.projection = Linear(channels * math.prod(config.patch_size), config.dim)
        self.class_token = nn.Parameter(torch.empty(1, config.dim)) if config.class_token else None
        self.positions = (
            make_positions(config.positions, config.dim, config.grid, class_entry=bool(config.class_token))
            if config.position_placement == "input"
            else None
        )
        self.distillation_token = nn.Parameter(torch.empty(1, config.dim)) if config.distillation_token else None
        self.registers = nn.Parameter(torch.empty(config.registers, config.dim)) if config.registers else None
        self.norm = nn.LayerNorm(config.dim, eps=config.norm_eps) if config.norm_embedded else None
        self.dropout = nn.Dropout(config.dropout)

    def forward(
        self,
        features: FeatureMap,
        *,
        kept: KeptPatches | None = None,
        corruption: Corruption | None = None,
        recorder: Recorder = NOTHING,
    ) -> Tokens:
        """Embed an image, or the feature map of a hybrid; `kept` lists the patches to embed."""
        pixels = patchify(features, self.patch_size)
        patches = self.projection(pixels if kept is None else pick(pixels, kept))  # x_p E, in one matrix product
        recorder.name("patches", patches)
        patches = patches if corruption is None else corrupt(patches, corruption)
        grid = patch_grid((features.shape[2], features.shape[3]), self.patch_size)
        tokens = self.assemble(patches, grid, kept)
        recorder.layer(0, tokens)
        return tokens

    def assemble(self, patches: Patches, grid: Size, kept: KeptPatches | None) -> KeptTokens:
        """Prepend the class token, add positions, insert the tokens that have none, drop out."""
        tokens = patches
        if self.class_token is not None:
            tokens = torch.cat([self.class_token.expand(patches.shape[0], 1, -1), patches], dim=1)
        if self.positions is not None:
            tokens = tokens + self.table(grid, kept)
        tokens = self.dropout(self.insert(tokens))
        return tokens if self.norm is None else self.norm(tokens)

    def insert(self, tokens: Tokens) -> KeptTokens:
        """Put the distillation token and the registers between the class token and the patches."""
        further = [table for table in (self.distillation_token, self.registers) if table is not None]
        if not further:
            return tokens
        first = 0 if self.class_token is None else 1
        rows = [table.expand(tokens.shape[0], -1, -1) for table in further]
        return torch.cat([tokens[:, :first], *rows, tokens[:, first:]], dim=1)

    def table(self, grid: Size, kept: KeptPatches | None) -> PositionTable | Tokens:
        """Return E_pos, interpolated for images of another size, or its rows for the kept patches of each image."""
        assert self.positions is not None  # noqa: S101 - called only then
        table = self.positions()
        if grid != self.grid:
            table = resize_positions(table, self.grid, grid, way=self.resize)
        if kept is None:
            return table
        first = 0 if self.class_token is None else 1
        rows = table[first:][kept]  # batch kept dim
        return torch.cat([table[:first].expand(kept.shape[0], first, -1), rows], dim=1)


def embedding_cost(config: ViTConfig) -> Unit:
    """Count the patch projection, which reads every pixel or cell once, the mask of dropout and the norm's input."""
    channels = config.channels if config.backbone is None else config.backbone.channels
    pixels = math.prod(config.grid) * math.prod(config.patch_size) * channels
    mask = config.num_tokens * config.dim if config.dropout else 0
    norm = config.num_tokens * (config.dim + 2) if config.norm_embedded else 0
    return Unit(macs=pixels * config.dim, activations=pixels + mask + norm, entry=pixels)


@dataclass(frozen=True, kw_only=True)
class PatchChoice:
    """Which patches of each image to encode: all, those of the numbers in `kept`, or a random part."""

    kept: KeptPatches | None = None
    """The numbers of the patches of each image, in raster order of the grid."""
    drop: float = 0.0
    """Part of the patches that are left out at random."""
    generator: Generator | None = None
    """Where the random part comes from; None is torch's global generator."""
    corruption: Corruption | None = None
    """Which embeddings are hidden or exchanged, of all patches; None leaves them as they are."""

    def __post_init__(self) -> None:
        """Refuse two choices at once."""
        if self.corruption is not None and self.some:
            raise ConfigError("corruption is for all patches of an image; leave out kept and drop_patches, or it.")
        if self.kept is not None and self.drop:
            raise ConfigError(f"both kept and drop_patches={self.drop} choose the patches to keep; give one of them.")

    @property
    def some(self) -> bool:
        """Whether some patches are left out or reordered."""
        return self.kept is not None or self.drop > 0

    def choose(self, features: FeatureMap, patch_size: Size) -> KeptPatches | None:
        """Return the numbers of the patches to keep, or None for all in order."""
        if not self.drop:
            return self.kept
        rows, columns = patch_grid((features.shape[2], features.shape[3]), patch_size)
        return random_patches(
            features.shape[0], rows * columns, self.drop, generator=self.generator, device=features.device
        )


ALL_PATCHES = PatchChoice()


def random_patches(
    batch: int,
    patches: int,
    drop: float,
    *,
    generator: Generator | None = None,
    device: str | torch.device = "cpu",
) -> KeptPatches:
    """Draw the patches that each image keeps, at least one; without a generator from torch's global one."""
    many = max(round(patches * (1 - drop)), 1)
    return torch.rand(batch, patches, generator=generator, device=device).argsort(dim=1)[:, :many]


def pick(pixels: PatchPixels, kept: KeptPatches) -> Float[Tensor, "batch kept_patch pixels"]:
    """Take the kept patches of each image: whole rows, many times as fast as a gather of single values."""
    images, patches = pixels.shape[:2]
    rows = kept + patches * torch.arange(images, device=kept.device)[:, None]
    return pixels.flatten(0, 1).index_select(0, rows.flatten()).unflatten(0, (images, -1))
