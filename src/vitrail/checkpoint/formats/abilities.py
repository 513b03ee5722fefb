"""What each format can hold, as data, and the refusal of what it cannot."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from vitrail.base.errors import CheckpointError
from vitrail.model.config import Pool, ViTConfig
from vitrail.model.family import ModelConfig
from vitrail.model.positions import PositionKind

# Parts that the paper's model does not have: the name of each, whether a model has it, and its name in messages.
PARTS: dict[str, tuple[Callable[[ViTConfig], bool], str]] = {
    "layer_scale": (lambda config: config.layer_scale is not None, "factors on the branches (layer_scale)"),
    "registers": (lambda config: config.registers > 0, "register tokens (registers)"),
    "norm_embedded": (lambda config: config.norm_embedded, "a LayerNorm before the encoder (norm_embedded)"),
    "no_norm": (lambda config: not config.norm_encoded, "an encoder without a last LayerNorm (norm_encoded)"),
    "distillation_token": (lambda config: config.distillation_token, "a distillation token"),
    "swiglu": (lambda config: config.mlp == "swiglu", "MLPs with a gate (mlp='swiglu')"),
    "projection": (lambda config: config.projection_size is not None, "a projection (projection_size)"),
    "rotary": (lambda config: config.rotary is not None, "rotary positions"),
    "rotary_cells": (
        lambda config: config.rotary is not None and config.rotary.coordinates == "cells",
        "rotary positions that count cells",
    ),
    "trim": (lambda config: config.trim, "pixels that fill no patch (trim)"),
    "pool_heads": (
        lambda config: config.pool_heads not in (None, config.num_heads),
        "attention pooling with heads of its own (pool_heads)",
    ),
    "pool_patches": (
        lambda config: config.pool == "attention" and config.num_prefix > 0 and config.first_pooled > 0,
        "attention pooling over patches beside other tokens (pool_prefix)",
    ),
    "pool_all": (
        lambda config: config.pool == "mean" and config.num_prefix > 0 and config.first_pooled == 0,
        "a mean over all tokens (pool_prefix)",
    ),
    "mixer": (lambda config: config.mixer.kind != "attention", "a mixer other than attention over all tokens (mixer)"),
    "quick_gelu": (lambda config: config.gelu == "quick", "CLIP's GELU (gelu='quick')"),
}


@dataclass(frozen=True, kw_only=True)
class Abilities:
    """The models that a library builds, and how it computes."""

    library: str
    """Its name in messages."""
    kinds: tuple[str, ...] = ("vit",)
    """The kinds of models that it has files for."""
    hybrid: bool = False
    """Whether a Vision Transformer may have a ResNet in front."""
    pools: tuple[Pool, ...] = ("class-token",)
    """What its heads may see."""
    idle_class_token: bool = False
    """Whether a class token may be there without being pooled."""
    norm_pooled: bool = False
    """Whether the last LayerNorm may come after the mean."""
    representation: bool = False
    """Whether there may be a tanh layer before the last one."""
    headless: bool = True
    """Whether the last layer may be left out."""
    parts: tuple[str, ...] = ()
    """Which parts of later models there may be, by the names of `PARTS`."""
    positions: tuple[PositionKind, ...] = ("learned-1d",)
    """Kinds of positions, at the input."""
    rectangles: bool = True
    """Whether images and patches may be other than square."""
    channels: tuple[int, ...] | None = None
    """How many channels its images may have; None stands for any."""
    numerics: dict[str, Any] = field(default_factory=dict)
    """Settings of ours that its code fixes: outputs change when ours are others."""
    backbone_numerics: dict[str, Any] = field(default_factory=dict)
    """The same for the ResNet of a hybrid."""


def check_expressible(config: ModelConfig, abilities: Abilities, *, lossy: bool) -> None:
    """Refuse a model that a format cannot hold, with every reason at once.

    `lossy` lets numerics change to the library's own, and with them the outputs a little; nothing else.
    """
    missing = lacking(config, abilities)
    changed = _changed_numerics(config, abilities)
    if not missing and (lossy or not changed):
        return
    reasons = missing + ([] if lossy else changed)
    advice = "choose another format (`to` vitrail holds every model)"
    if not missing:
        advice = "write it all the same with `lossy`, after which its outputs are a little different"
    raise CheckpointError(
        f"{abilities.library} cannot hold this model, and nothing is dropped silently; {advice}:\n"
        + "\n".join(f"    {reason}" for reason in reasons)
    )


def lacking(config: ModelConfig, abilities: Abilities) -> list[str]:
    """Return what a library has no place for in a model."""
    if config.kind not in abilities.kinds:
        return [f"a {config.noun}: {abilities.library} has no file for it"]
    return _lacking_of_vit(config, abilities) if isinstance(config, ViTConfig) else []


def _lacking_of_vit(config: ViTConfig, abilities: Abilities) -> list[str]:
    idle = bool(config.class_token) and config.pool in ("mean", "attention")
    squares = all(height == width for height, width in (config.image_size, config.patch_size))
    checks = {
        f"{config.pool} pooling": config.pool in abilities.pools,
        "a class token that is not pooled": abilities.idle_class_token or not idle,
        "a LayerNorm after the mean over tokens (norm_pooled)": abilities.norm_pooled or not config.norm_pooled,
        "a representation layer before the last one (representation_size)": abilities.representation
        or config.representation_size is None,
        "a convolutional backbone (hybrid)": abilities.hybrid or config.backbone is None,
        f"{config.positions} positions": config.positions in abilities.positions,
        f"positions at {config.position_placement}": config.position_placement == "input",
        f"an image of {config.image_size[0]}x{config.image_size[1]} or patches of "
        f"{config.patch_size[0]}x{config.patch_size[1]}, which are not square": abilities.rectangles or squares,
        f"images of {config.channels} channels": abilities.channels is None or config.channels in abilities.channels,
        "a model without a last layer (num_classes=0)": abilities.headless or config.num_classes > 0,
    }
    reasons = [reason for reason, possible in checks.items() if not possible]
    return reasons + [what for part, (has, what) in PARTS.items() if part not in abilities.parts and has(config)]


def with_numerics(config: ModelConfig, abilities: Abilities) -> ModelConfig:
    """Return the model as the library computes it, which is what a file for it is about."""
    fixed = {name: value for name, value in abilities.numerics.items() if hasattr(config, name)}
    if isinstance(config, ViTConfig) and config.backbone is not None:
        fixed["backbone"] = replace(config.backbone, **abilities.backbone_numerics)
    return replace(config, **fixed)


def _changed_numerics(config: ModelConfig, abilities: Abilities) -> list[str]:
    """Return the settings for which the library would compute with other values."""
    pairs: list[tuple[Any, dict[str, Any], str]] = [(config, abilities.numerics, "")]
    if isinstance(config, ViTConfig) and config.backbone is not None:
        pairs.append((config.backbone, abilities.backbone_numerics, "backbone."))
    return [
        f"{prefix}{name}={getattr(owner, name)!r}: {abilities.library} computes with {fixed!r}"
        for owner, fixed_settings, prefix in pairs
        for name, fixed in fixed_settings.items()
        if hasattr(owner, name) and getattr(owner, name) != fixed
    ]
