"""What timm keeps beside its weights: the arguments of its constructor, class names and preprocessing."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from vitrail.base.errors import CheckpointError, did_you_mean
from vitrail.checkpoint.contents import Contents
from vitrail.checkpoint.formats.folder import numbers, setting
from vitrail.checkpoint.formats.timm_facts import Facts
from vitrail.checkpoint.infer import ask_pixels
from vitrail.data.preprocessing import (
    CLIP_MEAN,
    CLIP_STD,
    HALF,
    IMAGENET_MEAN,
    IMAGENET_STD,
    Preprocessing,
    preset,
)
from vitrail.model.config import ViTConfig
from vitrail.model.patches import Size

CLIP_EPS = 1e-5
"""The epsilon of CLIP's norms in timm, where other models have 1e-6."""
_POOLS = {"class-token": "token", "mean": "avg", "attention": "map", "distilled": "token"}
_GELUS = {"tanh": "gelu_tanh", "erf": "gelu", "quick": "quick_gelu"}
_STATISTICS = {
    "half": (HALF, HALF),
    "imagenet": (IMAGENET_MEAN, IMAGENET_STD),
    "clip": (CLIP_MEAN, CLIP_STD),
}


def arguments(config: ViTConfig) -> dict[str, Any]:
    """Return the arguments of timm's constructor for a model."""
    settings: dict[str, Any] = {
        "img_size": list(config.image_size),
        "patch_size": list(config.patch_size),
        "in_chans": config.channels,
        "num_classes": config.projection_size or config.num_classes,
        "global_pool": _POOLS[config.pool],
        "embed_dim": config.dim,
        "depth": config.depth,
        "num_heads": config.num_heads,
        "mlp_ratio": _ratio(config.mlp_dim * (2 if config.mlp == "swiglu" else 1), config.dim),
        "class_token": bool(config.class_token),
        "pos_embed": "learn" if config.positions == "learned-1d" else "none",
        "fc_norm": config.norm_pooled,
        "act_layer": _GELUS[config.gelu],
    }
    if config.layer_scale is not None:
        settings["init_values"] = config.layer_scale or 1.0  # timm takes 0 for none
    if config.registers:
        settings["reg_tokens"] = config.registers
    if config.norm_embedded or config.norm_eps == CLIP_EPS:
        settings["pre_norm"] = config.norm_embedded
    if not config.norm_encoded:
        settings["final_norm"] = False
    if config.pool in ("mean", "attention") and config.num_prefix and config.first_pooled == 0:
        settings["pool_include_prefix"] = True
    return settings


def _ratio(mlp_dim: int, dim: int) -> float:
    """Return a ratio that timm, which rounds down, turns into the same hidden width."""
    ratio = mlp_dim / dim
    return ratio if int(dim * ratio) == mlp_dim else (mlp_dim + 0.5) / dim


def how_to_build(config: ViTConfig) -> str:
    """Return a sentence about which timm model the state dict belongs to."""
    if config.backbone is not None:
        return f"the state dict is for a timm hybrid with a backbone of {config.backbone.blocks} units."
    listed = [f"{name}={value!r}" for name, value in arguments(config).items()]
    if config.norm_eps != 1e-6:
        listed.append(f"norm_layer=functools.partial(torch.nn.LayerNorm, eps={config.norm_eps})")
    return f"the state dict is for timm.models.VisionTransformer({', '.join(listed)})."


def settings_of(contents: Contents, config: ViTConfig) -> dict[str, Any]:
    """Write the `config.json` of a folder: a model of timm's list with every argument given."""
    listed = arguments(config)
    pixels = contents.preprocessing or preset("timm", image_size=config.image_size, channels=config.channels)
    settings: dict[str, Any] = {
        "architecture": "vit_base_patch16_clip_224" if config.norm_eps == CLIP_EPS else "vit_base_patch16_224",
        "num_classes": config.projection_size or config.num_classes,
        "num_features": config.dim,
        "global_pool": listed["global_pool"],
        "model_args": {name: value for name, value in listed.items() if name != "num_classes"},
        "pretrained_cfg": {
            "input_size": [config.channels, *config.image_size],
            "interpolation": pixels.interpolation,
            "crop_pct": pixels.crop_fraction,
            "crop_mode": "center" if pixels.geometry == "crop" else "squash",
            "mean": list(pixels.mean),
            "std": list(pixels.std),
            "num_classes": config.projection_size or config.num_classes,
            "first_conv": "patch_embed.proj",
            "classifier": "head",
        },
    }
    if contents.labels is not None:
        settings["label_names"] = list(contents.labels)
    return settings


def read_labels(names: Any, num_classes: int) -> tuple[str, ...] | None:
    """Return the class names of a `config.json`, if there is one for each class."""
    good = isinstance(names, list) and len(names) == num_classes and all(isinstance(name, str) for name in names)
    return tuple(names) if good and num_classes else None


def read_preprocessing(
    settings: Mapping[str, Any], facts: Facts, config: ViTConfig
) -> tuple[Preprocessing | None, str | None]:
    """Return how images become input, or the sentence that asks for it.

    `pretrained_cfg` comes first, then what the published files of the architectures that it may be agree on.
    """
    published = setting(dict(settings), "pretrained_cfg", dict, {})
    if published.get("mean") is not None:
        mode = published.get("crop_mode") or "center"
        if mode not in ("center", "squash"):
            return None, f"{facts.origin} crops images in the way {mode!r}, which is not known; give preprocessing."
        return from_config(published, config.image_size, config.channels), None
    ways = _published(settings, facts, config)
    if len(set(ways.values())) == 1:
        return next(iter(ways.values())), None
    several = {way: name for name, way in ways.items()}
    known_ways = "; ".join(
        f"{name}: mean {_text(way.mean)}, crop {way.crop_fraction:g}" for way, name in list(several.items())[:2]
    )
    why = f"published models like it differ ({known_ways})" if several else "no published model is like it"
    return None, f"{ask_pixels(facts.origin, why)[:-1]}; or give the model's name in timm as `architecture`."


def from_config(published: dict[str, Any], image_size: Size, channels: int) -> Preprocessing:
    """Take over what the `pretrained_cfg` of a `config.json` states, and timm's usual value for the rest."""
    usual = preset("timm", image_size=image_size, channels=channels)
    return replace(
        usual,
        geometry="square" if published.get("crop_mode") == "squash" else "crop",
        crop_fraction=setting(published, "crop_pct", float, usual.crop_fraction),
        interpolation=setting(published, "interpolation", str, usual.interpolation),  # type: ignore[arg-type]
        mean=numbers(published, "mean", usual.mean),
        std=numbers(published, "std", usual.std),
    )


def _published(settings: Mapping[str, Any], facts: Facts, config: ViTConfig) -> dict[str, Preprocessing]:
    """Return what the published files do that this one may be, by their names."""
    named = facts.hints.get("architecture") or setting(dict(settings), "architecture", str, "")
    tag = named.partition(".")[2]
    ways = {}
    for name, row in facts.rows.items() if facts.sized else ():
        tags = row["tags"]
        if named and len(facts.rows) == 1:  # its own tag, or timm's first
            if tag not in tags:
                raise CheckpointError(f"timm has no {name} with the tag {tag!r}.{did_you_mean(tag, tags)}")
            tags = {tag: tags[tag]}
        for tag_name, way in tags.items():
            ways[f"{name}.{tag_name}".rstrip(".")] = way
    same = {name: way for name, way in ways.items() if tuple(way[4]) == config.image_size}
    return {name: _from_row(way, config) for name, way in (same or ways).items()} if config.channels == 3 else {}


def _from_row(way: list[Any], config: ViTConfig) -> Preprocessing:
    statistics, interpolation, crop_fraction, mode, _ = way
    mean, std = _STATISTICS[statistics] if isinstance(statistics, str) else statistics
    return Preprocessing(
        image_size=config.image_size,
        geometry="square" if mode == "squash" else "crop",
        crop_fraction=crop_fraction,
        interpolation=interpolation,
        antialias=True,
        mean=tuple(mean),
        std=tuple(std),
    )


def _text(values: tuple[float, ...]) -> str:
    return ", ".join(f"{value:g}" for value in values)
