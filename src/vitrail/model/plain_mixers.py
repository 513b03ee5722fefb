"""Mixers without attention: pooling, nothing, an MLP over patches, and a depthwise convolution.

They have no heads and no maps, and no place for a class token: a model with one of them pools its patches.
"""

import math
from typing import Any

import torch.nn.functional as F
from torch import nn

from vitrail.base.products import Linear
from vitrail.base.shapes import FeatureMap, Patches
from vitrail.model import kernels
from vitrail.model.config import ViTConfig
from vitrail.model.gelu import Gelu
from vitrail.model.mixer_settings import DepthwiseConvolution, Pooling, TokenMlp
from vitrail.model.patches import Size
from vitrail.model.units import Unit


def as_map(patches: Patches, grid: Size) -> FeatureMap:
    """Put patches on their grid."""
    return patches.mT.unflatten(2, grid)


class PoolingMixer(nn.Module):
    """The mean of the neighbours that there are, minus the patch itself."""

    def __init__(self, size: int, grid: Size) -> None:
        super().__init__()
        self.size, self.grid = size, grid

    def forward(self, patches: Patches, *, grid: Size | None = None, **_: Any) -> Patches:
        """Mix the patches of a grid, by default the model's own."""
        features = as_map(patches, grid or self.grid)
        mean = F.avg_pool2d(features, self.size, stride=1, padding=self.size // 2, count_include_pad=False)
        return (mean - features).flatten(2).mT


class IdentityMixer(nn.Module):
    """Every patch by itself."""

    def forward(self, patches: Patches, **_: Any) -> Patches:
        """Return the patches."""
        return patches


class ConvolutionMixer(nn.Module):
    """A kernel for each channel, with zeros around the grid."""

    def __init__(self, dim: int, size: int, grid: Size) -> None:
        super().__init__()
        self.grid = grid
        self.depthwise = nn.Conv2d(dim, dim, size, padding=size // 2, groups=dim)

    def forward(self, patches: Patches, *, grid: Size | None = None, **_: Any) -> Patches:
        """Convolve the patches of a grid, by default the model's own."""
        return self.depthwise(as_map(patches, grid or self.grid)).flatten(2).mT


class TokenMlpMixer(nn.Module):
    """GELU(x W_1 + b_1) W_2 + b_2 over the N patches of each channel x."""

    def __init__(self, patches: int, hidden: int, *, gelu: Gelu, dropout: float) -> None:
        super().__init__()
        self.gelu = gelu
        self.hidden = Linear(patches, hidden)
        self.out = Linear(hidden, patches)
        self.dropout = nn.Dropout(dropout)

    def forward(self, patches: Patches, **_: Any) -> Patches:
        """Mix the patches of each channel."""
        hidden = self.dropout(kernels.activate(self.hidden(patches.mT), self.gelu))
        return self.dropout(self.out(hidden)).mT


def make_plain_mixer(config: ViTConfig) -> nn.Module:
    """Build a mixer without attention."""
    match config.mixer:
        case Pooling(size=size):
            return PoolingMixer(size, config.grid)
        case DepthwiseConvolution(size=size):
            return ConvolutionMixer(config.dim, size, config.grid)
        case TokenMlp():
            hidden = token_mlp_width(config)
            return TokenMlpMixer(math.prod(config.grid), hidden, gelu=config.gelu, dropout=config.dropout)
        case _:
            return IdentityMixer()


def token_mlp_width(config: ViTConfig) -> int:
    """Return the hidden width of the MLP over patches: that of the settings, or half of the model's."""
    assert isinstance(config.mixer, TokenMlp)  # noqa: S101 - called only then
    return config.mixer.hidden or max(config.dim // 2, 1)


def plain_cost(config: ViTConfig) -> Unit:
    """Count one layer: products of convolution and MLP, and what each keeps; a mean keeps only its input."""
    patches, dim = math.prod(config.grid), config.dim
    wide = patches * dim
    match config.mixer:
        case Pooling():
            return Unit(macs=0, activations=wide)
        case DepthwiseConvolution(size=size):
            return Unit(macs=wide * size * size, activations=wide)
        case TokenMlp():
            hidden = dim * token_mlp_width(config)
            masks = hidden + wide if config.dropout else 0
            return Unit(macs=2 * hidden * patches, activations=wide + 2 * hidden + masks)
        case _:
            return Unit(macs=0, activations=0)
