"""Models small enough for a test, with no weight left at zero or one."""

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from vitrail import BackboneConfig, ResNetConfig, ViTConfig, build

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
