"""What timm keeps beside its weights: the arguments of its constructor, class names and preprocessing."""

from typing import Any

from vitrail.checkpoint.contents import Contents
from vitrail.checkpoint.formats.folder import numbers, setting
from vitrail.data.preprocessing import Preprocessing, preset
from vitrail.model.config import ViTConfig
from vitrail.model.patches import Size


def arguments(config: ViTConfig) -> dict[str, Any]:
    """Return the arguments of timm's constructor for a model."""
    pools = {"class-token": "token", "mean": "avg", "attention": "map"}
    return {
        "img_size": list(config.image_size),
        "patch_size": list(config.patch_size),
        "in_chans": config.channels,
        "num_classes": config.num_classes,
        "global_pool": pools[config.pool],
        "embed_dim": config.dim,
        "depth": config.depth,
        "num_heads": config.num_heads,
        "mlp_ratio": _ratio(config.mlp_dim, config.dim),
        "class_token": bool(config.class_token),
        "pos_embed": "learn" if config.positions == "learned-1d" else "none",
        "fc_norm": config.norm_pooled,
        "act_layer": {"tanh": "gelu_tanh", "erf": "gelu"}[config.gelu],
    }


def _ratio(mlp_dim: int, dim: int) -> float:
    """Return a ratio that timm, which rounds down, turns into the same hidden width."""
    ratio = mlp_dim / dim
    return ratio if int(dim * ratio) == mlp_dim else (mlp_dim + 0.5) / dim


def how_to_build(config: ViTConfig) -> str:
    """Say which timm model the state dict belongs to."""
    if config.backbone is not None:
        return f"the state dict is for a timm hybrid with a backbone of {config.backbone.blocks} units."
    listed = [f"{name}={value!r}" for name, value in arguments(config).items()]
    if config.norm_eps != 1e-6:
        listed.append(f"norm_layer=functools.partial(torch.nn.LayerNorm, eps={config.norm_eps})")
    return f"the state dict is for timm.models.VisionTransformer({', '.join(listed)})."


def settings_of(contents: Contents, config: ViTConfig) -> dict[str, Any]:
    """Write the `config.json` of a folder: a model of timm's list with every argument given."""
    given = arguments(config)
    pixels = contents.preprocessing or preset("timm", image_size=config.image_size, channels=config.channels)
    settings: dict[str, Any] = {
        "architecture": "vit_base_patch16_224",
        "num_classes": config.num_classes,
        "num_features": config.dim,
        "global_pool": given["global_pool"],
        "model_args": {name: value for name, value in given.items() if name != "num_classes"},
        "pretrained_cfg": {
            "input_size": [config.channels, *config.image_size],
            "interpolation": pixels.interpolation,
            "crop_pct": pixels.crop_fraction,
            "crop_mode": "center" if pixels.geometry == "crop" else "squash",
            "mean": list(pixels.mean),
            "std": list(pixels.std),
            "num_classes": config.num_classes,
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


def read_preprocessing(settings: dict[str, Any], image_size: Size, channels: int) -> Preprocessing:
    """Take over what the `pretrained_cfg` of a `config.json` says, and timm's usual for what it does not."""
    given = setting(settings, "pretrained_cfg", dict, {})
    usual = preset("timm", image_size=image_size, channels=channels)
    return Preprocessing(
        image_size=image_size,
        geometry="square" if given.get("crop_mode") == "squash" else "crop",
        crop_fraction=setting(given, "crop_pct", float, usual.crop_fraction),
        interpolation=setting(given, "interpolation", str, usual.interpolation),  # type: ignore[arg-type]
        antialias=True,
        mean=numbers(given, "mean", usual.mean),
        std=numbers(given, "std", usual.std),
    )
