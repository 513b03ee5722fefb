"""What a model costs, from its config alone: parameters, multiply-accumulates, values kept for the backward pass."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks
from torch.utils.flop_counter import FlopCounterMode

from vitrail.base.readable import counted
from vitrail.base.table import Table, Tabular
from vitrail.model.build import build
from vitrail.model.config import BackboneConfig, ViTConfig
from vitrail.model.contract import ModelConfig
from vitrail.model.patches import Size
from vitrail.model.resnet import ResNetConfig


@dataclass(frozen=True, kw_only=True, repr=False)
class Cost(Tabular):
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

    def tables(self) -> list[Table]:
        """Return the figures with what they count."""
        rows = (
            ("parameters", f"{self.parameters:,}", counted(self.parameters)),
            ("tokens", str(self.tokens or "-"), ""),
            ("MACs", f"{self.macs:,}", counted(self.macs)),
            ("activations", f"{self.activations:,}", "values kept for the backward pass"),
            ("checkpointed", f"{self.checkpointed_activations:,}", "when blocks are computed again"),
        )
        return [Table(columns=("", "of one image", "note"), rows=rows)]


def cost(config: ModelConfig) -> Cost:
    """Count everything without allocating a weight."""
    parameters = sum(parameter.numel() for parameter in build(config, device="meta").parameters())
    return Cost(parameters=parameters, tokens=config.sequence or None, **_sum(_units(config)))


@dataclass(frozen=True, kw_only=True)
class _Unit:
    """A part of a model that activation checkpointing would treat as one."""

    macs: int
    kept: int
    entry: int
    """Size of its input."""


def _units(config: ModelConfig) -> list[_Unit]:
    if isinstance(config, ResNetConfig):
        return list(_resnet_units(config))
    if isinstance(config, ViTConfig):
        units = [_embedding(config), *_encoder_blocks(config), _head(config)]
        hybrid = config.backbone
        return units + ([] if hybrid is None else list(_backbone_units(hybrid, config.channels, config.image_size)))
    return [_counted(config)]


def _counted(config: ModelConfig) -> _Unit:
    """Let torch count a training pass of any other kind of model, without computing anything."""
    model, kept = build(config, device="meta"), [0]

    def keep(tensor: Tensor) -> Tensor:
        kept[0] += 0 if isinstance(tensor, nn.Parameter) else tensor.numel()
        return tensor

    image = torch.empty(1, config.channels, *config.image_size, device="meta")
    with FlopCounterMode(display=False) as counter, saved_tensors_hooks(keep, lambda tensor: tensor):
        model(image)
    return _Unit(macs=counter.get_total_flops() // 2, kept=kept[0], entry=image.numel())


def _sum(units: list[_Unit]) -> dict[str, int]:
    return {
        "macs": sum(unit.macs for unit in units),
        "activations": sum(unit.kept for unit in units),
        "checkpointed_activations": sum(unit.entry for unit in units) + max(unit.kept for unit in units),
    }


def _embedding(config: ViTConfig) -> _Unit:
    channels = config.channels if config.backbone is None else config.backbone.channels
    pixels = math.prod(config.grid) * math.prod(config.patch_size) * channels
    mask = config.num_tokens * config.dim if config.dropout else 0
    return _Unit(macs=pixels * config.dim, kept=pixels + mask, entry=pixels)


def _encoder_blocks(config: ViTConfig) -> Iterator[_Unit]:
    tokens, dim, heads = config.num_tokens, config.dim, config.num_heads
    wide, hidden = tokens * dim, tokens * config.mlp_dim
    macs = 4 * wide * dim + 2 * wide * tokens + 2 * wide * config.mlp_dim
    # What the backward pass reads: the inputs of both norms, qkv and the MLP; q, k, v and the attention's output with
    # one sum for each query; the MLP's hidden layer before and after GELU; mean and deviation of each norm.
    kept = 8 * wide + 2 * hidden + tokens * heads + 4 * tokens
    first_only = 2 * wide + 2 * heads * tokens + 2 * heads * dim
    if config.positions == "relative" or config.attention_dropout:  # torch's fused kernel takes neither: A is kept
        kept += heads * tokens * tokens - heads * tokens
    if config.attention_dropout:
        kept += 2 * heads * tokens * tokens
        first_only += 2 * heads * tokens
    if config.positions == "relative":
        offsets = 2 * tokens - 1
        macs += wide * offsets
        kept += heads * tokens * offsets + wide
        first_only += heads * offsets + dim
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


@dataclass(frozen=True, kw_only=True)
class _Shape:
    """The sizes of one unit of a ResNet."""

    inputs: int
    width: int
    before: Size
    after: Size
    shortcut: bool


def _bottleneck(shape: _Shape, *, kept: int) -> _Unit:
    before, after, outputs = math.prod(shape.before), math.prod(shape.after), 4 * shape.width
    macs = _conv_macs(shape.inputs, shape.width, 1, before) + _conv_macs(shape.width, shape.width, 3, after)
    macs += _conv_macs(shape.width, outputs, 1, after)
    if shape.shortcut:
        macs += _conv_macs(shape.inputs, outputs, 1, after)
    return _Unit(macs=macs, kept=kept, entry=shape.inputs * before)


def _stages(blocks: tuple[int, ...], width: int, size: Size) -> Iterator[_Shape]:
    """Yield every unit, from the size of the root's output."""
    inputs = width
    for stage, units in enumerate(blocks):
        for unit in range(units):
            after = _halved(size) if stage > 0 and unit == 0 else size
            yield _Shape(inputs=inputs, width=width * 2**stage, before=size, after=after, shortcut=unit == 0)
            inputs, size = 4 * width * 2**stage, after


def _halved(size: Size) -> Size:
    return -(-size[0] // 2), -(-size[1] // 2)


def _padded(size: Size, kernel: int) -> tuple[int, bool]:
    """Count the cells of a map after SAME padding for stride 2, and tell whether that makes a copy."""
    totals = [max((-(-side // 2) - 1) * 2 + kernel - side, 0) for side in size]
    return (size[0] + totals[0]) * (size[1] + totals[1]), any(total % 2 for total in totals)


def _root(width: int, channels: int, image_size: Size, *, same: bool) -> tuple[_Unit, Size]:
    """Count a root: a hybrid's pads SAME and has a norm and a ReLU, BiT's pads alike on all sides and has neither."""
    half = _halved(image_size)
    quarter = _halved(half)
    image = _padded(image_size, 7)[0] if same and _padded(image_size, 7)[1] else math.prod(image_size)
    pool_input = _padded(half, 3)[0] if same else (half[0] + 2) * (half[1] + 2)
    places = 2 * width * math.prod(quarter)  # a 64-bit index for each maximum
    kept = channels * image + width * pool_input + places + (2 * width * math.prod(half) if same else 0)
    macs = _conv_macs(channels, width, 7, math.prod(half))
    return _Unit(macs=macs, kept=kept, entry=math.prod(image_size) * channels), quarter


def _backbone_units(config: BackboneConfig, channels: int, image_size: Size) -> Iterator[_Unit]:
    root, size = _root(config.width, channels, image_size, same=True)
    yield root
    for shape in _stages(config.blocks, config.width, size):
        before, after = math.prod(shape.before), math.prod(shape.after)
        # The input, two norms with their ReLUs, the third norm, and the shortcut's.
        kept = shape.inputs * before + 2 * shape.width * (before + after) + 4 * shape.width * after
        if shape.shortcut:
            kept += 4 * shape.width * after
        padded, copied = _padded(shape.before, 3)
        if shape.before != shape.after and copied:
            kept += shape.width * padded
        size = shape.after
        yield _bottleneck(shape, kept=kept)
    if config.blocks:  # the last ReLU's output, of which patches are a copy
        yield _Unit(macs=0, kept=config.channels * math.prod(size), entry=0)


def _resnet_units(config: ResNetConfig) -> Iterator[_Unit]:
    root, size = _root(config.width, config.channels, config.image_size, same=False)
    yield root
    for shape in _stages(config.blocks, config.width, size):
        before, after = math.prod(shape.before), math.prod(shape.after)
        kept = 2 * shape.inputs * before + 2 * shape.width * (before + after)  # three norms with their ReLUs
        size = shape.after
        yield _bottleneck(shape, kept=kept)
    cells, width = math.prod(size), config.feature_width
    yield _Unit(macs=width * config.num_classes, kept=(2 * cells + 1) * width, entry=width * cells)
