"""From a name or a config to a model."""

from dataclasses import fields, replace
from typing import Any

import torch

from vitrail.base.errors import ConfigError, did_you_mean
from vitrail.model import axial_resnet, resnet, vit  # noqa: F401 - each registers its kind of model
from vitrail.model.contract import Model
from vitrail.model.family import ModelConfig
from vitrail.model.init import initialise
from vitrail.model.mixer_settings import as_mixer
from vitrail.model.patches import Size
from vitrail.model.variants import named_config


def create(
    name: str,
    *,
    num_classes: int = 1000,
    image_size: int | Size = 224,
    channels: int = 3,
    seed: int | None = None,
    device: str | torch.device = "cpu",
    **settings: Any,
) -> Model:
    """Make a model of the paper with fresh weights.

    `name` is a row of `vitrail models`, such as "B/16", "R50+B/16" or "R50x1". `settings` are any other fields of
    `ViTConfig` or `ResNetConfig`: pool="mean", positions="relative", dropout=0.1. With a `seed` the weights are the
    same on every machine; without one they come from torch's global generator. On device "meta" nothing is stored.
    """
    config = configure(name, num_classes=num_classes, image_size=image_size, channels=channels, **settings)
    return build(config, seed=seed, device=device)


def configure(name: str, **settings: Any) -> ModelConfig:
    """Return the config of a named model with some fields changed."""
    for field in ("image_size", "patch_size"):
        if field in settings:
            settings[field] = as_size(settings[field])
    if "mixer" in settings:
        settings["mixer"] = as_mixer(settings["mixer"])
    return named_config(name, **settings)


def config_of(model: str | ModelConfig | Model, **settings: Any) -> ModelConfig:
    """Return the config of a name, of a config or of a model, with some fields changed."""
    if isinstance(model, str):
        return configure(model, **settings)
    config: ModelConfig = model.config if isinstance(model, Model) else model
    names = {field.name for field in fields(config)}
    for name in sorted(settings.keys() - names):
        raise ConfigError(f"the model ({config.summary}) has no setting {name!r}.{did_you_mean(name, names)}")
    sizes = {name: as_size(settings[name]) for name in settings.keys() & {"image_size", "patch_size"}}
    mixers = {name: as_mixer(settings[name]) for name in settings.keys() & {"mixer"}}
    return replace(config, **settings | sizes | mixers)


def as_size(size: int | Size) -> Size:
    """Read one number as a square."""
    if isinstance(size, int):
        return size, size
    if not isinstance(size, tuple | list) or len(size) != 2:
        raise ConfigError(f"a size is {size!r}, but must be one number for a square, or (height, width).")
    return size[0], size[1]


def build(config: ModelConfig, *, seed: int | None = None, device: str | torch.device = "cpu") -> Model:
    """Make the model of a config; parameters are filled once, on the device where they live."""
    with torch.device("meta"):
        model = config.module(config)
    if torch.device(device).type == "meta":
        return model
    model.to_empty(device=device)
    generator = None if seed is None else torch.Generator(device).manual_seed(seed)
    initialise(model, head_bias=config.head_bias, generator=generator)
    return model
