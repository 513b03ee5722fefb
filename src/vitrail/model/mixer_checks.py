"""Refusals of what the token mixer of a model's blocks has no place for."""

from collections.abc import Sequence

from vitrail.base.errors import ConfigError
from vitrail.model.config import ViTConfig
from vitrail.model.patches import Size, size_text


def check_mixer(config: ViTConfig) -> None:
    """Refuse tokens, positions and dropout that do not go with the mixer."""
    mixer = config.mixer.kind
    if config.num_prefix and not config.mixer.sees_prefix:
        raise ConfigError(
            f"the mixer {mixer!r} shows the patches to no class token, distillation token or register; "
            "set pool='mean' or pool='attention', without such tokens."
        )
    if config.positions == "relative" and mixer != "attention":
        raise ConfigError(
            f"relative positions belong to attention over all tokens, but mixer is {mixer!r}; choose other positions."
        )
    if config.rotary is not None and not config.mixer.rotates:
        raise ConfigError(
            f"rotary positions turn queries and keys, which the mixer {mixer!r} does not compare; leave rotary out."
        )
    if mixer == "sparse" and config.num_heads < 2:
        raise ConfigError("the mixer 'sparse' has two kinds of heads, but num_heads is 1; choose at least 2.")
    if config.attention_dropout and not (config.mixer.has_maps and config.mixer.rotates):
        raise ConfigError(
            f"attention_dropout is {config.attention_dropout}, but the mixer {mixer!r} has no weights to drop; "
            "set it to 0."
        )


def check_mixer_patches(config: ViTConfig, *, drop: float, sizes: Sequence[Size]) -> None:
    """Refuse to drop patches that the mixer needs, or to change a grid that its weights depend on."""
    mixer = config.mixer
    if drop and not mixer.any_patches:
        raise ConfigError(f"the mixer {mixer.kind!r} needs every patch of its grid; leave drop_patches at 0.")
    if not mixer.any_grid and any(size != config.image_size for size in sizes):
        raise ConfigError(
            f"the mixer {mixer.kind!r} has a weight for each patch of {size_text(config.image_size)} pixels; "
            "train at that size alone, or choose another mixer."
        )
