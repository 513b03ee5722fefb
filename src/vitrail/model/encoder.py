"""The Transformer encoder: blocks of attention and MLP with residuals (Eq. 2-4)."""

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from vitrail.base.shapes import KeptTokens, PositionTable, Tokens
from vitrail.model.config import ViTConfig
from vitrail.model.merging import Merging
from vitrail.model.mixers import make_mixer, mixer_cost
from vitrail.model.mlp import make_mlp, mlp_cost
from vitrail.model.patches import Size
from vitrail.model.positions import make_positions
from vitrail.model.rotary import Rotation
from vitrail.model.trace import NOTHING, MapRecorder, Recorder, Take
from vitrail.model.units import Unit


def stochastic_depth(branch: Tensor, rate: float, generator: torch.Generator | None = None) -> Tensor:
    """Zero the branch for whole images with probability `rate`, and scale up the others."""
    shape = (branch.shape[0],) + (1,) * (branch.ndim - 1)
    mask = torch.empty(shape, dtype=branch.dtype, device=branch.device).bernoulli_(1 - rate, generator=generator)
    return branch * mask / (1 - rate)


class EncoderBlock(nn.Module):
    """One layer of the encoder, pre-norm."""

    def __init__(self, config: ViTConfig, layer: int) -> None:
        super().__init__()
        self.stochastic_depth = config.stochastic_depth * layer / max(config.depth - 1, 1)
        self.norm1 = nn.LayerNorm(config.dim, eps=config.norm_eps)
        self.attention = make_mixer(config, layer)
        self.norm2 = nn.LayerNorm(config.dim, eps=config.norm_eps)
        self.mlp = make_mlp(config)
        scaled = config.layer_scale is not None
        self.scale1 = nn.Parameter(torch.empty(config.dim)) if scaled else None
        self.scale2 = nn.Parameter(torch.empty(config.dim)) if scaled else None

    def forward(
        self,
        tokens: Tokens,
        *,
        first_only: bool = False,
        maps: MapRecorder | None = None,
        rotation: Rotation | None = None,
        units: Take | None = None,
        grid: Size | None = None,
        merging: Merging | None = None,
    ) -> KeptTokens:
        """Map z_(l-1) to z_l, or to its first token only, which takes far less work; `maps` asks for A."""
        kept = tokens[:, :1] if first_only else tokens
        mixed = self.attention(
            self.norm1(tokens), first_only=first_only, maps=maps, rotation=rotation, grid=grid, merging=merging
        )
        kept = kept + self.skip(mixed, self.scale1)  # Eq. 2
        if merging is not None and not first_only:
            kept = merging.merge(kept)
        return kept + self.skip(self.mlp(self.norm2(kept), units=units), self.scale2)  # Eq. 3

    def skip(self, branch: Tensor, scale: Tensor | None) -> Tensor:
        """Apply LayerScale where there is one, and stochastic depth while training."""
        branch = branch if scale is None else branch * scale
        if not self.training or self.stochastic_depth == 0:
            return branch
        return stochastic_depth(branch, self.stochastic_depth)


class Encoder(nn.Module):
    """L blocks and the last LayerNorm."""

    recompute = False
    """Whether training keeps only each block's input and computes the rest again (activation checkpointing)."""

    def __init__(self, config: ViTConfig) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(EncoderBlock(config, layer) for layer in range(config.depth))
        tables = {"input": 0, "every-layer": config.depth, "every-layer-shared": 1}[config.position_placement]
        positions = [
            make_positions(config.positions, config.dim, config.grid, class_entry=bool(config.class_token))
            for _ in range(tables)
        ]
        self.positions = nn.ModuleList(table for table in positions if table is not None)
        normed = config.norm_encoded and not config.norm_pooled
        self.norm = nn.LayerNorm(config.dim, eps=config.norm_eps) if normed else None

    def forward(
        self,
        tokens: Tokens,
        *,
        first_only: bool = False,
        recorder: Recorder = NOTHING,
        rotation: Rotation | None = None,
        grid: Size | None = None,
        merging: Merging | None = None,
    ) -> KeptTokens:
        """Encode the sequence; with `first_only` the last block computes only the first token.

        `grid` is that of the images, where it is not the model's own; `merging` makes the sequence shorter.
        """
        last = len(self.blocks) - 1
        for layer, block in enumerate(self.blocks):
            placed, alone, maps = self.place(tokens, layer), first_only and layer == last, recorder.maps.get(layer)
            plain = maps is None and merging is None  # what a pass keeps is not computed again
            if self.recompute and torch.is_grad_enabled() and plain:
                tokens = checkpoint(block, placed, first_only=alone, rotation=rotation, grid=grid, use_reentrant=False)
            else:
                units = recorder.activations(f"block {layer}")
                tokens = block(
                    placed, first_only=alone, maps=maps, rotation=rotation, units=units, grid=grid, merging=merging
                )
            recorder.layer(layer + 1, tokens)
        return self.finish(tokens)

    def place(self, tokens: Tokens, layer: int) -> Tokens:
        """Add the positions that this layer starts with, if it has any (App. D.4)."""
        return tokens if len(self.positions) == 0 else tokens + self.position(layer)

    def position(self, layer: int) -> PositionTable:
        """Return the table that this layer starts with."""
        return self.positions[layer % len(self.positions)]()

    def finish(self, tokens: KeptTokens) -> KeptTokens:
        """Apply the last LayerNorm (Eq. 4), unless it comes after pooling or not at all."""
        return tokens if self.norm is None else self.norm(tokens)


def encoder_costs(config: ViTConfig) -> list[Unit]:
    """Count each block: its norms keep their inputs, with a mean and a deviation for each token."""
    wide = config.num_tokens * config.dim
    scales = 0 if config.layer_scale is None else 2 * wide
    norms = Unit(macs=0, activations=2 * wide + 4 * config.num_tokens + scales, entry=wide)
    blocks = [norms + mixer_cost(config, layer) + mlp_cost(config) for layer in range(config.depth)]
    if config.pool != "class-token":
        return blocks
    activations = wide + mixer_cost(config, config.depth - 1, first_only=True).activations  # one token's MLP is little
    return [*blocks[:-1], Unit(macs=blocks[-1].macs, activations=activations, entry=wide)]
