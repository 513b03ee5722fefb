"""Models small enough for a test, with no weight left at zero or one."""

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from vitrail import BackboneConfig, ResNetConfig, RotaryConfig, ViTConfig, build
from vitrail.model.axial_resnet import AxialResNetConfig
from vitrail.model.mixer_settings import (
    AxialAttention,
    DepthwiseConvolution,
    Identity,
    LinearAttention,
    Pooling,
    SparseAttention,
    TokenMlp,
    WindowAttention,
)

# Table 8 of the paper and the fixed sine-cosine table: kind and placement.
POSITIONS = [
    ("none", "input"),
    *[
        (kind, placement)
        for kind in ("learned-1d", "learned-2d", "sincos-2d")
        for placement in ("input", "every-layer", "every-layer-shared")
    ],
    ("relative", "input"),
]
POOLS = ["class-token", "mean", "attention"]


def vit_config(**changes: Any) -> ViTConfig:
    """A Vision Transformer of 3x4 patches and two blocks."""
    fields = {
        "dim": 32,
        "depth": 2,
        "num_heads": 4,
        "mlp_dim": 64,
        "patch_size": (4, 4),
        "image_size": (12, 16),
        "num_classes": 7,
    }
    return ViTConfig(**fields | changes)


# What later models have beside the paper's: one setting each, and together as published.
LATER: dict[str, dict[str, Any]] = {
    "LayerScale": {"layer_scale": 0.1},
    "registers": {"registers": 3},
    "registers, mean": {"registers": 3, "pool": "mean"},
    "norm before the encoder": {"norm_embedded": True},
    "quick GELU": {"gelu": "quick"},
    "SwiGLU": {"mlp": "swiglu"},
    "distilled": {"distillation_token": True, "pool": "distilled"},
    "idle distillation token": {"distillation_token": True},
    "class token beside the mean": {"pool": "class-and-mean"},
    "attention over patches": {"pool": "attention", "class_token": True, "pool_prefix": False},
    "attention pool of other heads": {"pool": "attention", "pool_heads": 2},
    "no last norm": {"norm_encoded": False, "pool": "mean"},
    "projection": {"projection_size": 20},
    "rotary": {"rotary": RotaryConfig()},
    "rotary cells": {"rotary": RotaryConfig(base=1e4, coordinates="cells", reference=(5, 5), offset=1.0)},
    "trimmed": {"trim": True, "image_size": (13, 18)},
    "CLIP": {"norm_embedded": True, "gelu": "quick", "projection_size": 20, "num_classes": 0},
    "DINOv2 giant": {"registers": 2, "mlp": "swiglu", "layer_scale": 1e-5, "pool": "class-and-mean"},
    "DINOv3": {"rotary": RotaryConfig(), "positions": "none", "registers": 4, "layer_scale": 1e-5, "pool": "mean"},
}

# Mixers in place of attention, with and without a class token where they have a place for it.
MIXERS: dict[str, dict[str, Any]] = {
    "axial": {"mixer": AxialAttention(), "pool": "mean"},
    "axial, class token": {"mixer": AxialAttention()},
    "axial, rotary": {"mixer": AxialAttention(), "rotary": RotaryConfig()},
    "axial, rotary, mean": {"mixer": AxialAttention(), "rotary": RotaryConfig(), "pool": "mean"},
    "window": {"mixer": WindowAttention(size=2), "pool": "mean"},
    "window, class token": {"mixer": WindowAttention(size=3)},
    "window, registers": {"mixer": WindowAttention(size=3), "registers": 2},
    "sparse": {"mixer": SparseAttention(), "pool": "mean"},
    "sparse, class token": {"mixer": SparseAttention(stride=5)},
    "linear": {"mixer": LinearAttention(), "pool": "mean"},
    "linear, class token": {"mixer": LinearAttention()},
    "pooling": {"mixer": Pooling(), "pool": "mean"},
    "identity": {"mixer": Identity(), "pool": "mean"},
    "mlp": {"mixer": TokenMlp(), "pool": "mean"},
    "convolution": {"mixer": DepthwiseConvolution(size=5), "pool": "mean"},
}


def hybrid_config(**changes: Any) -> ViTConfig:
    """A hybrid with two stages: 40x48 pixels become 5x6 tokens."""
    backbone = BackboneConfig(blocks=(1, 2), width=8, norm_groups=4)
    return vit_config(**{"backbone": backbone, "patch_size": (1, 1), "image_size": (40, 48)} | changes)


def resnet_config(**changes: Any) -> ResNetConfig:
    """A BiT ResNet with two stages."""
    fields = {"blocks": (1, 2), "width": 8, "norm_groups": 4, "image_size": (40, 48), "num_classes": 7}
    return ResNetConfig(**fields | changes)


def perturbed(config: ViTConfig | ResNetConfig, *, seed: int = 0, by: float = 0.1) -> nn.Module:
    """Build a model, in evaluation mode, and move every weight a little, so that none is trivial."""
    model = build(config, seed=seed)
    generator = torch.Generator().manual_seed(seed + 1)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator) * by)
    return model.eval()


def images_for(config: ViTConfig | ResNetConfig, batch: int = 2, *, seed: int = 2) -> Tensor:
    """Images from a unit normal."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(batch, config.channels, *config.image_size, generator=generator)


def arrays(module: nn.Module, prefix: str = "") -> dict[str, np.ndarray]:
    """The weights of a module in float64, without a prefix of their names."""
    state = module.state_dict()
    return {
        name.removeprefix(prefix): value.double().numpy() for name, value in state.items() if name.startswith(prefix)
    }


def close(given: Tensor, wanted: Tensor | np.ndarray, tolerance: float) -> None:
    """Assert that no value is further off than `tolerance`, absolutely."""
    torch.testing.assert_close(
        given.detach().double(), torch.as_tensor(wanted).detach().double(), rtol=0, atol=tolerance
    )


def axial_resnet_config(**changes: Any) -> AxialResNetConfig:
    """A ResNet with axial attention and two stages."""
    fields = {"blocks": (1, 2), "width": 8, "norm_groups": 4, "num_heads": 2, "image_size": (40, 48), "num_classes": 7}
    return AxialResNetConfig(**fields | changes)
