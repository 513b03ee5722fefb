"""What a model costs, from its config alone: parameters, multiply-accumulates, values kept for the backward pass."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from vitrail.model.build import Config, build
from vitrail.model.config import BackboneConfig, ViTConfig
from vitrail.model.patches import Size
from vitrail.model.resnet import ResNetConfig


@dataclass(frozen=True, kw_only=True)
class Cost:
    """The cost of one image."""

    parameters: int
    """Trainable values."""
    tokens: int | None
    """Length of the sequence; None for a ResNet."""
    macs: int
    """Multiply-accumulates of one forward pass as the paper counts them: every token through every block."""
    activations: int
    """Values kept for the backward pass."""
    checkpointed_activations: int
    """The same when blocks, or the units of a ResNet, keep only their input and are computed again."""


def cost(config: Config) -> Cost:
    """Count everything without allocating a weight."""
    parameters = sum(parameter.numel() for parameter in build(config, device="meta").parameters())
    if isinstance(config, ResNetConfig):
        units = list(_resnet_units(config))
        return Cost(parameters=parameters, tokens=None, **_sum(units))
    units = [_embedding(config), *_encoder_blocks(config), _head(config)]
    if config.backbone is not None:
        units += _backbone_units(config.backbone, config.channels, config.image_size)
    return Cost(parameters=parameters, tokens=config.num_tokens, **_sum(units))


@dataclass(frozen=True, kw_only=True)
class _Unit:
    """A part of a model that activation checkpointing would treat as one."""

    macs: int
    kept: int
    entry: int
    """Size of its input."""


def _sum(units: list[_Unit]) -> dict[str, int]:
    return {
        "macs": sum(unit.macs for unit in units),
        "activations": sum(unit.kept for unit in units),
        "checkpointed_activations": sum(unit.entry for unit in units) + max(unit.kept for unit in units),
    }


def _embedding(config: ViTConfig) -> _Unit:
    channels = config.channels if config.backbone is None else config.backbone.channels
    pixels = math.prod(config.grid) * math.prod(config.patch_size) * channels
    return _Unit(macs=pixels * config.dim, kept=pixels, entry=pixels)


def _encoder_blocks(config: ViTConfig) -> Iterator[_Unit]:
    tokens, dim, heads = config.num_tokens, config.dim, config.num_heads
    wide, hidden = tokens * dim, tokens * config.mlp_dim
    macs = 4 * wide * dim + 2 * wide * tokens + 2 * wide * config.mlp_dim
    # What the backward pass reads: the inputs of both norms, qkv and the MLP; q, k, v and the attention's output with
    # one sum for each query; the MLP's hidden layer before and after GELU; mean and deviation of each norm.
    kept = 8 * wide + 2 * hidden + tokens * heads + 4 * tokens
    first_only = 2 * wide + 2 * heads * tokens + 2 * heads * dim
    if config.positions == "relative":
        offsets = 2 * tokens - 1
        macs += wide * offsets
        kept += 2 * heads * tokens * tokens + wide  # torch's fused kernel does not take such a bias: A is kept
        first_only += heads * tokens
    if config.dropout:
        kept += 2 * wide + hidden
    for layer in range(config.depth):
        last = layer == config.depth - 1 and config.pool == "class-token"
        yield _Unit(macs=macs, kept=first_only if last else kept, entry=wide)


def _head(config: ViTConfig) -> _Unit:
    tokens, dim = config.num_tokens, config.dim
    width = config.representation_size or dim
    macs = (dim * width if config.representation_size else 0) + width * config.num_classes
    kept = dim + width if config.pool == "class-token" else tokens * dim
    if config.pool == "attention":
        macs += 2 * tokens * dim * dim + 2 * tokens * dim + 2 * dim * dim + 2 * dim * config.mlp_dim
        kept += 3 * tokens * dim
    return _Unit(macs=macs, kept=kept, entry=0)


def _conv_macs(inputs: int, outputs: int, kernel: int, cells: int) -> int:
    return inputs * outputs * kernel * kernel * cells


def _bottleneck(inputs: int, width: int, before: int, after: int, *, shortcut: bool, kept: int) -> _Unit:
    """Count one unit with `before` cells at its input and `after` at its output."""
    outputs = 4 * width
    macs = _conv_macs(inputs, width, 1, before) + _conv_macs(width, width, 3, after)
    macs += _conv_macs(width, outputs, 1, after)
    if shortcut:
        macs += _conv_macs(inputs, outputs, 1, after)
    return _Unit(macs=macs, kept=kept, entry=inputs * before)


def _stages(blocks: tuple[int, ...], width: int, size: Size) -> Iterator[tuple[int, int, int, int, bool]]:
    """Yield (inputs, width, cells before, cells after, has a shortcut) of every unit, from the root's output size."""
    inputs = width
    for stage, units in enumerate(blocks):
        for unit in range(units):
            before = math.prod(size)
            if stage > 0 and unit == 0:
                size = (-(-size[0] // 2), -(-size[1] // 2))
            yield inputs, width * 2**stage, before, math.prod(size), unit == 0
            inputs = 4 * width * 2**stage


def _root(width: int, channels: int, image_size: Size, *, normed: bool) -> tuple[_Unit, Size]:
    half = (-(-image_size[0] // 2), -(-image_size[1] // 2))
    quarter = (-(-half[0] // 2), -(-half[1] // 2))
    cells = math.prod(half)
    pooled = 2 * width * math.prod(quarter)  # the 64-bit place of each maximum
    padded = width * (half[0] + 2) * (half[1] + 2)
    kept = math.prod(image_size) * channels + padded + pooled + (2 * width * cells if normed else 0)
    return _Unit(macs=_conv_macs(channels, width, 7, cells), kept=kept, entry=math.prod(image_size) * channels), quarter


def _backbone_units(config: BackboneConfig, channels: int, image_size: Size) -> Iterator[_Unit]:
    root, size = _root(config.width, channels, image_size, normed=True)
    yield root
    for inputs, width, before, after, shortcut in _stages(config.blocks, config.width, size):
        # The input (a ReLU's output), two norms with their ReLUs, the third norm, and the shortcut's.
        kept = inputs * before + 2 * width * before + 2 * width * after + 4 * width * after * (2 if shortcut else 1)
        yield _bottleneck(inputs, width, before, after, shortcut=shortcut, kept=kept)


def _resnet_units(config: ResNetConfig) -> Iterator[_Unit]:
    root, size = _root(config.width, config.channels, config.image_size, normed=False)
    yield root
    after = math.prod(size)
    for inputs, width, before, after, shortcut in _stages(config.blocks, config.width, size):
        kept = 2 * inputs * before + 2 * width * before + 2 * width * after  # three norms with their ReLUs
        yield _bottleneck(inputs, width, before, after, shortcut=shortcut, kept=kept)
    yield _Unit(
        macs=config.features * config.num_classes, kept=(2 * after + 1) * config.features, entry=config.features * after
    )
