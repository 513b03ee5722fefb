"""The small models that studies vary, for data of any size: 64 patches, so that a run takes minutes on two cores.

The paper's own bases are ViT-B and R50 at 224 pixels; the questions are the same, the answers belong to this size.
"""

from typing import Any

from vitrail.model.axial_resnet import AxialResNetConfig
from vitrail.model.backbone import BackboneConfig
from vitrail.model.config import ViTConfig
from vitrail.model.cost import cost
from vitrail.model.family import ModelConfig
from vitrail.model.resnet import ResNetConfig
from vitrail.runs.choose import choose_side
from vitrail.runs.draft import Facts

PATCHES = 8
"""Rows and columns of patches."""


def vit(facts: Facts, **changes: Any) -> ViTConfig:
    """Return a Vision Transformer of 64 x 4."""
    side = choose_side(facts)
    fields: dict[str, Any] = {
        "dim": 64,
        "depth": 4,
        "num_heads": 4,
        "mlp_dim": 128,
        "patch_size": (side // PATCHES, side // PATCHES),
        "image_size": (side, side),
        "channels": facts.channels,
        "num_classes": facts.classes,
        "gelu": "erf",
    }
    return ViTConfig(**fields | changes)


def hybrid(facts: Facts, **changes: Any) -> ViTConfig:
    """Return the same behind the root of a ResNet, whose map is a quarter of the image."""
    cells = max(choose_side(facts) // 4 // PATCHES, 1)
    root = BackboneConfig(blocks=(), width=32, norm_groups=16)
    return vit(facts, **{"backbone": root, "patch_size": (cells, cells), "pool": "mean"} | changes)


def resnet(facts: Facts, *, axial: bool = False, **changes: Any) -> ModelConfig:
    """Return a BiT ResNet of three stages."""
    side = choose_side(facts)
    fields: dict[str, Any] = {
        "blocks": (1, 1, 1),
        "width": 16,
        "norm_groups": 8,
        "image_size": (side, side),
        "channels": facts.channels,
        "num_classes": facts.classes,
    }
    return AxialResNetConfig(**fields | {"num_heads": 4} | changes) if axial else ResNetConfig(**fields | changes)


def resnet_like(facts: Facts, model: ModelConfig) -> ModelConfig:
    """Return the ResNet whose multiply-accumulates are nearest to a model's, of widths in steps of 8."""
    goal = cost(model).macs
    return min((resnet(facts, width=width) for width in range(8, 168, 8)), key=lambda one: abs(cost(one).macs - goal))
