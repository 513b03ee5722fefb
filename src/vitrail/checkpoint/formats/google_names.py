"""The names of Google's files, for every dialect: the table that reading and writing share."""

from typing import NamedTuple

import torch

from vitrail.checkpoint.layout import (
    BATCHED,
    COPY,
    KERNEL_HWIO,
    TRANSPOSED,
    WITHOUT_CLASS_ENTRY,
    Codec,
    Entry,
    Layout,
    patches_hwio,
    single,
)
from vitrail.model.config import ViTConfig


class BlockNames(NamedTuple):
    """What the parts of an encoder block are called."""

    norm1: str
    attention: str
    norm2: str
    mlp: str


OLD = BlockNames("LayerNorm_0", "MultiHeadDotProductAttention_1", "LayerNorm_2", "MlpBlock_3")
MODERN = BlockNames("LayerNorm_0", "MultiHeadDotProductAttention_0", "LayerNorm_1", "MlpBlock_0")


def layout(config: ViTConfig, names: BlockNames, *, prefix: str = "", position_name: str, class_entry: bool) -> Layout:
    """List every tensor of a Vision Transformer or hybrid."""
    heads = config.num_heads
    table = [
        Entry("embedding.projection.weight", ("embedding/kernel",), patches_hwio(config.patch_size)),
        Entry("embedding.projection.bias", ("embedding/bias",)),
        Entry("embedding.class_token", ("cls",), BATCHED),
        Entry("embedding.positions.table", (position_name,), _positions(config, class_entry)),
        *_norm("encoder.norm", "Transformer/encoder_norm"),
        Entry("head.pool.probe", ("MAPHead_0/probe",), BATCHED),
        *_attention("head.pool", "MAPHead_0/MultiHeadDotProductAttention_0", heads, pool=True),
        *_norm("head.pool.norm", "MAPHead_0/LayerNorm_0"),
        *_mlp("head.pool.mlp", "MAPHead_0/MlpBlock_0"),
        *_dense("head.representation", "pre_logits"),
        *_dense("head.linear", "head"),
    ]
    for layer in range(config.depth):
        ours, theirs = f"encoder.blocks.{layer}", f"Transformer/encoderblock_{layer}"
        table += _norm(f"{ours}.norm1", f"{theirs}/{names.norm1}")
        table += _attention(f"{ours}.attention", f"{theirs}/{names.attention}", heads, pool=False)
        table += _norm(f"{ours}.norm2", f"{theirs}/{names.norm2}")
        table += _mlp(f"{ours}.mlp", f"{theirs}/{names.mlp}")
    if config.backbone is not None:
        table += _backbone(config.backbone.blocks)
    return [Entry(ours, tuple(prefix + name for name in theirs), codec) for ours, theirs, codec in table]


def _positions(config: ViTConfig, class_entry: bool) -> Codec:
    """Choose the codec by which sides have an entry for the class token."""
    if class_entry == bool(config.class_token):
        return BATCHED
    if config.class_token:
        return WITHOUT_CLASS_ENTRY
    return single(lambda theirs: theirs[0, 1:], lambda ours: ours.new_zeros(1, len(ours) + 1, ours.shape[1]))


def _norm(ours: str, theirs: str) -> Layout:
    return [Entry(f"{ours}.weight", (f"{theirs}/scale",)), Entry(f"{ours}.bias", (f"{theirs}/bias",))]


def _dense(ours: str, theirs: str) -> Layout:
    return [
        Entry(f"{ours}.weight", (f"{theirs}/kernel",), TRANSPOSED),
        Entry(f"{ours}.bias", (f"{theirs}/bias",), COPY),
    ]


def _mlp(ours: str, theirs: str) -> Layout:
    return _dense(f"{ours}.hidden", f"{theirs}/Dense_0") + _dense(f"{ours}.out", f"{theirs}/Dense_1")


def _attention(ours: str, theirs: str, heads: int, *, pool: bool) -> Layout:
    """Fuse query, key and value, whose kernels are (D, heads, D / heads)."""
    fused = {"query": ("query",), "key_value": ("key", "value")} if pool else {"qkv": ("query", "key", "value")}
    table = [
        Entry(
            f"{ours}.out.weight",
            (f"{theirs}/out/kernel",),
            single(lambda kernel: kernel.flatten(0, 1).mT, lambda ours: ours.mT.reshape(heads, -1, len(ours))),
        ),
        Entry(f"{ours}.out.bias", (f"{theirs}/out/bias",)),
    ]
    for name, parts in fused.items():
        table += [
            Entry(
                f"{ours}.{name}.weight",
                tuple(f"{theirs}/{part}/kernel" for part in parts),
                _head_kernels(heads, len(parts)),
            ),
            Entry(
                f"{ours}.{name}.bias", tuple(f"{theirs}/{part}/bias" for part in parts), _head_biases(heads, len(parts))
            ),
        ]
    return table


def _head_kernels(heads: int, parts: int) -> Codec:

    return Codec(
        lambda theirs: torch.cat([kernel.flatten(1).mT for kernel in theirs]),
        lambda ours: [part.mT.reshape(len(part), heads, -1) for part in ours.chunk(parts)],
    )


def _head_biases(heads: int, parts: int) -> Codec:

    return Codec(
        lambda theirs: torch.cat([bias.flatten() for bias in theirs]),
        lambda ours: [part.reshape(heads, -1) for part in ours.chunk(parts)],
    )


def _backbone(blocks: tuple[int, ...]) -> Layout:
    """List the ResNet of a hybrid, whose stages and units count from 1."""
    table = [Entry("backbone.root.conv.weight", ("conv_root/kernel",), KERNEL_HWIO)]
    table += _norm("backbone.root.norm", "gn_root")
    for stage, units in enumerate(blocks):
        for unit in range(units):
            ours, theirs = f"backbone.stages.{stage}.{unit}", f"block{stage + 1}/unit{unit + 1}"
            for number in (1, 2, 3):
                table.append(Entry(f"{ours}.conv{number}.weight", (f"{theirs}/conv{number}/kernel",), KERNEL_HWIO))
                table += _norm(f"{ours}.norm{number}", f"{theirs}/gn{number}")
            table.append(Entry(f"{ours}.shortcut.conv.weight", (f"{theirs}/conv_proj/kernel",), KERNEL_HWIO))
            table += _norm(f"{ours}.shortcut.norm", f"{theirs}/gn_proj")
    return table
