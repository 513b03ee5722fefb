"""Patches become tokens: E, the class token and positions (Eq. 1)."""

import math

import torch
from torch import nn

from vitrail.base.shapes import FeatureMap, Patches, Tokens
from vitrail.model.config import ViTConfig
from vitrail.model.patches import patchify
from vitrail.model.positions import make_positions


class Embedding(nn.Module):
    """z_0 = [x_class; x_p^1 E; ...; x_p^N E] + E_pos."""

    def __init__(self, config: ViTConfig) -> None:
        super().__init__()
        channels = config.channels if config.backbone is None else config.backbone.channels
        self.patch_size = config.patch_size
        self.projection = nn.Linear(channels * math.prod(config.patch_size), config.dim)
        self.class_token = nn.Parameter(torch.empty(1, config.dim)) if config.class_token else None
        self.positions = (
            make_positions(config.positions, config.dim, config.grid, class_entry=bool(config.class_token))
            if config.position_placement == "input"
            else None
        )
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, features: FeatureMap) -> Tokens:
        """Embed an image, or the feature map of a hybrid."""
        return self.assemble(self.project(features))

    def project(self, features: FeatureMap) -> Patches:
        """Compute x_p E: every patch in one matrix product."""
        return self.projection(patchify(features, self.patch_size))

    def assemble(self, patches: Patches) -> Tokens:
        """Prepend the class token, add positions, drop out."""
        tokens = patches
        if self.class_token is not None:
            tokens = torch.cat([self.class_token.expand(patches.shape[0], 1, -1), patches], dim=1)
        if self.positions is not None:
            tokens = tokens + self.positions()
        return self.dropout(tokens)
