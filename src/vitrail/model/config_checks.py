"""Refusals of a Vision Transformer's settings: values one by one, values together, and what training asks of them."""

from collections.abc import Sequence
from dataclasses import replace
from typing import get_args

from vitrail.base.errors import ConfigError
from vitrail.model.checks import (
    check_choice,
    check_count,
    check_divides,
    check_positive,
    check_probability,
    check_size,
)
from vitrail.model.config import MlpKind, Pool, ViTConfig
from vitrail.model.gelu import Gelu
from vitrail.model.mixer_checks import check_mixer, check_mixer_patches
from vitrail.model.patches import Size
from vitrail.model.positions import Placement, PositionKind, ResizeWay


def check_vit(config: ViTConfig) -> None:
    """Refuse what cannot be built."""
    check_choice("pool", config.pool, get_args(Pool))
    check_choice("positions", config.positions, get_args(PositionKind))
    check_choice("position_placement", config.position_placement, get_args(Placement))
    check_choice("position_resize", config.position_resize, get_args(ResizeWay))
    check_choice("gelu", config.gelu, get_args(Gelu))
    check_choice("mlp", config.mlp, get_args(MlpKind))
    check_positive(
        dim=config.dim, depth=config.depth, num_heads=config.num_heads, mlp_dim=config.mlp_dim, channels=config.channels
    )
    check_size("image_size", config.image_size)
    check_size("patch_size", config.patch_size)
    check_count("num_classes", config.num_classes)
    check_count("registers", config.registers)
    for name in ("representation_size", "projection_size"):
        if (width := getattr(config, name)) is not None:
            check_positive(**{name: width})
    check_probability(
        dropout=config.dropout, attention_dropout=config.attention_dropout, stochastic_depth=config.stochastic_depth
    )
    check_divides("num_heads", config.num_heads, "dim", config.dim)
    check_positive(pool_heads=config.pool_heads or config.num_heads)
    check_divides("pool_heads", config.pool_heads or config.num_heads, "dim", config.dim)
    _check_combinations(config)
    _check_positions(config)
    check_mixer(config)
    _ = config.grid


def _check_combinations(config: ViTConfig) -> None:
    """Refuse settings that are fine one by one but not together."""
    if config.pool in ("class-token", "class-and-mean", "distilled") and not config.class_token:
        raise ConfigError(
            f"{config.pool} pooling needs a class token, but class_token is False; "
            "set class_token=True or choose pool='mean' or 'attention'."
        )
    if config.pool == "distilled" and not config.distillation_token:
        raise ConfigError(
            "distilled pooling needs a distillation token, but distillation_token is False; "
            "set distillation_token=True or choose pool='class-token'."
        )
    if config.distillation_token and not config.class_token:
        raise ConfigError("a distillation token follows a class token, but class_token is False; set it to True.")
    if config.norm_pooled and not config.norm_encoded:
        raise ConfigError("norm_pooled moves the last LayerNorm, but norm_encoded is False; set it to True.")
    if config.norm_pooled and config.pool != "mean":
        raise ConfigError(
            f"norm_pooled moves the last LayerNorm after the mean over tokens, but pool is {config.pool!r}; "
            "set pool='mean' or norm_pooled=False."
        )
    if config.representation_size and config.projection_size:
        raise ConfigError(
            "representation_size and projection_size are both given, but a head has at most one of the two layers; "
            "leave one out."
        )


def _check_positions(config: ViTConfig) -> None:
    """Refuse positions that do not go with the width, with each other, or with further tokens."""
    divisor = {"learned-2d": 2, "sincos-2d": 4}.get(config.positions, 1)
    if config.dim % divisor:
        raise ConfigError(
            f"positions={config.positions!r} splits dim into {divisor} equal parts, but dim is {config.dim}; "
            f"choose a dim that {divisor} divides, or positions='learned-1d'."
        )
    if config.position_placement != "input" and config.positions in ("none", "relative"):
        raise ConfigError(
            f"positions={config.positions!r} are not added to tokens, so they take no placement "
            f"{config.position_placement!r} (Table 8 has no such cell); leave position_placement at 'input'."
        )

    inside = config.positions == "relative" or config.position_placement != "input"
    if inside and (config.registers or config.distillation_token or config.rotary):
        raise ConfigError(
            f"positions {config.positions!r} placed at {config.position_placement!r} know the class token and patches "
            "only; with registers, a distillation token or rotary positions choose others, at the input."
        )
    if config.rotary is not None and config.dim // config.num_heads % 4:
        raise ConfigError(
            f"rotary positions split a head into 4 equal parts, but it has {config.dim // config.num_heads} values; "
            f"choose another num_heads than {config.num_heads}."
        )


def check_vit_patches(config: ViTConfig, *, drop: float, sizes: Sequence[Size]) -> None:
    """Refuse to drop patches or change the grid where positions are inside the encoder, which has one grid."""
    if (drop or sizes) and (config.positions == "relative" or config.position_placement != "input"):
        raise ConfigError(
            f"positions {config.positions!r} placed at {config.position_placement!r} belong to one full grid; to drop "
            "patches or to train at other sizes, choose positions that are added at the input."
        )
    check_mixer_patches(config, drop=drop, sizes=sizes)
    for size in sizes:
        _ = replace(config, image_size=size)


def check_vit_tokens(config: ViTConfig) -> None:
    """Refuse what sees hidden pixels all the same, or has weights that no patch reaches."""
    if config.backbone is not None:
        raise ConfigError(
            "the convolutions of a hybrid see hidden patches from those beside them; choose a model without one."
        )
    for name, idle in (
        ("pool", config.pool == "attention"),
        ("norm_pooled", config.norm_pooled),
        ("representation_size", config.representation_size is not None),
        ("projection_size", config.projection_size is not None),
    ):
        if idle:
            raise ConfigError(
                f"{name} is {getattr(config, name)!r}, whose weights learn nothing where patches are predicted; "
                "choose pool='mean' or 'class-token', and no layer between it and the head."
            )
