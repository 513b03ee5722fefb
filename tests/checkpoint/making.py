"""Models for round trips, and comparisons to the last bit."""

from pathlib import Path

import numpy as np
import torch
from torch import nn

from tests.tiny import perturbed, vit_config
from vitrail import BackboneConfig, ResNetConfig, RotaryConfig, ViTConfig

RECORDED = Path(__file__).parent.parent / "golden" / "checkpoints"
JAX = Path(__file__).parent.parent / "golden" / "jax"

TIMM_BACKBONE = {"norm_eps": 1e-5, "standardisation": "sqrt-var-eps", "standardisation_eps": 1e-8}
ERF = {"gelu": "erf"}


def hybrid(**changes) -> ViTConfig:
    """A hybrid of two stages with the 32 groups that every library has: 40x48 pixels become 5x6 tokens."""
    backbone = BackboneConfig(**{"blocks": (1, 2), "width": 32} | changes)
    return vit_config(backbone=backbone, patch_size=(1, 1), image_size=(40, 48))


def resnet(**changes) -> ResNetConfig:
    fields = {"blocks": (1, 2), "width": 32, "image_size": (40, 48), "num_classes": 7}
    return ResNetConfig(**fields | changes)


# Name -> a model and the formats that hold it to the last bit, settings included.
HELD: dict[str, tuple[ViTConfig | ResNetConfig, tuple[str, ...]]] = {
    "class token": (vit_config(), ("google", "google-linen", "timm", "huggingface")),
    "class token, erf": (vit_config(**ERF), ("timm", "huggingface")),
    "class token, square, erf": (
        vit_config(image_size=(16, 16), **ERF),
        ("timm", "huggingface", "torchvision"),
    ),
    "mean": (vit_config(pool="mean"), ("google", "google-linen", "big-vision", "timm")),
    "mean beside a class token": (vit_config(pool="mean", class_token=True), ("timm",)),
    "mean, then norm": (vit_config(pool="mean", norm_pooled=True), ("timm",)),
    "attention": (vit_config(pool="attention"), ("big-vision", "timm")),
    "representation": (vit_config(representation_size=12), ("google", "google-linen")),
    "representation, square, erf": (
        vit_config(representation_size=12, image_size=(16, 16), **ERF),
        ("torchvision",),
    ),
    "representation without classes": (vit_config(representation_size=12, num_classes=0), ("google", "huggingface")),
    "no classes": (vit_config(num_classes=0), ("google", "timm", "huggingface")),
    "no positions": (vit_config(positions="none"), ("google", "google-linen", "timm")),
    "one channel, tall patches": (vit_config(channels=1, patch_size=(6, 4)), ("google", "timm", "huggingface")),
    "LayerScale": (vit_config(layer_scale=1e-5), ("timm",)),
    "registers": (vit_config(registers=3, num_classes=0), ("timm",)),
    "registers, mean": (vit_config(registers=3, pool="mean"), ("timm",)),
    "SwiGLU": (vit_config(mlp="swiglu", layer_scale=1e-5, gelu="erf"), ("timm",)),
    "no last norm": (vit_config(norm_encoded=False), ("timm",)),
    "attention over patches": (vit_config(pool="attention", class_token=True, pool_prefix=False), ("timm",)),
    "distillation token without classes": (
        vit_config(distillation_token=True, num_classes=0, representation_size=12),
        ("huggingface",),
    ),
    "mean without a class token": (vit_config(pool="mean", gelu="quick"), ("timm", "huggingface")),
    "attention without classes": (
        vit_config(pool="attention", num_classes=0, image_size=(16, 16)),
        ("timm", "huggingface"),
    ),
    "DINOv2": (vit_config(layer_scale=1e-5, pool="class-and-mean", image_size=(16, 16)), ("huggingface",)),
    "DINOv2 giant": (
        vit_config(
            layer_scale=1e-5, registers=4, mlp="swiglu", gelu="erf", num_classes=0, image_size=(16, 16), norm_eps=1e-6
        ),
        ("timm", "huggingface"),
    ),
    "DINOv3": (
        vit_config(
            layer_scale=1.0,
            registers=4,
            gelu="erf",
            num_classes=0,
            rotary=RotaryConfig(),
            positions="none",
            norm_eps=1e-5,
        ),
        ("huggingface",),
    ),
    "sine-cosine, mean": (vit_config(positions="sincos-2d", pool="mean"), ("big-vision",)),
    "hybrid": (hybrid(), ("google", "google-linen")),
    "hybrid, timm's numerics": (hybrid(**TIMM_BACKBONE), ("timm",)),
    "hybrid, root alone": (
        vit_config(backbone=BackboneConfig(blocks=(), width=32), image_size=(48, 32)),
        ("google", "google-linen"),
    ),
    "resnet": (resnet(), ("google",)),
    "resnet, timm's numerics": (resnet(standardisation_eps=1e-8), ("timm",)),
    "resnet without classes": (resnet(num_classes=0), ("google",)),
}
CASES = [(name, to) for name, (_, formats) in HELD.items() for to in formats]

# Models that only our own file holds.
OWN = {
    f"{kind}, {placement}": vit_config(positions=kind, position_placement=placement)
    for kind in ("learned-1d", "learned-2d", "sincos-2d")
    for placement in ("every-layer", "every-layer-shared")
} | {"relative": vit_config(positions="relative"), "learned-2d": vit_config(positions="learned-2d")}


def made(config: ViTConfig | ResNetConfig, dtype: torch.dtype = torch.float32) -> nn.Module:
    return perturbed(config).to(dtype)


def file_for(folder: Path, to: str) -> Path:
    """A path with the suffix that a format needs."""
    suffix = {"huggingface": "", "timm": ".safetensors", "torchvision": ".safetensors", "vitrail": ".safetensors"}
    return folder / f"model{suffix.get(to, '.npz')}"


def same_weights(one: nn.Module, other: nn.Module) -> None:
    """Assert that two models have the same tensors to the last bit."""
    ours, theirs = one.state_dict(), other.state_dict()
    assert list(ours) == list(theirs)
    for name, tensor in ours.items():
        assert tensor.dtype == theirs[name].dtype, name
        assert torch.equal(tensor, theirs[name]), name


def recorded(name: str) -> tuple[dict[str, torch.Tensor], torch.Tensor, torch.Tensor]:
    """Weights, images and logits of a library's own model."""
    with np.load(RECORDED / f"{name}.npz") as stored:
        values = {key: torch.tensor(stored[key]) for key in stored if key != "recorded_with"}
    weights = {key.removeprefix("weight:"): value.float() for key, value in values.items() if key.startswith("weight:")}
    return weights, values["images"].float(), values["logits"]
