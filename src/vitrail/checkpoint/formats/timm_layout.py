"""The names of timm's Vision Transformers, of its classes VisionTransformer, VisionTransformerDistilled and Eva."""

from collections.abc import Container
from dataclasses import dataclass

from vitrail.checkpoint.layout import (
    AVERAGED_BIASES,
    AVERAGED_KERNELS,
    BATCHED,
    COPY,
    QUERY_AND_VALUE,
    WITH_ZERO_BIAS,
    WITHOUT_CLASS_ENTRY,
    Codec,
    Entry,
    Layout,
    named,
    patches_oihw,
    permuted,
    rows,
    stacked,
    with_zero_rows,
)
from vitrail.model.config import ViTConfig

BACKBONE = "patch_embed.backbone"


@dataclass(frozen=True, kw_only=True)
class Dialect:
    """How a state dict writes what timm's classes write in different ways."""

    entries: int
    """Tokens before the patches that have an entry in the table of positions, after folding: 0 or 1; all in a file
    that is written."""
    norm: str = "norm"
    """The last LayerNorm, where it is applied before pooling."""
    scales: str = "ls{}.gamma"
    """The factors of a branch, 1 or 2."""
    split: bool = False
    """Whether queries, keys and values have a kernel each."""
    packed: bool = True
    """Whether the gate of SwiGLU lies in one tensor with the hidden layer."""
    order: tuple[int, ...] | None = None
    """The rows of queries, keys and values in our order; None where theirs is ours."""
    absent: Container[str] = ()
    """Biases that the file leaves out, by their names in it."""


def layout(config: ViTConfig, dialect: Dialect) -> Layout:
    """List every tensor."""
    table = [
        Entry("embedding.projection.weight", ("patch_embed.proj.weight",), patches_oihw(config.patch_size)),
        Entry("embedding.projection.bias", ("patch_embed.proj.bias",)),
        Entry("embedding.class_token", ("cls_token",), BATCHED),
        Entry("embedding.distillation_token", ("dist_token",), BATCHED),
        Entry("embedding.registers", ("reg_token",), BATCHED),
        Entry("embedding.positions.table", ("pos_embed",), _positions(config, dialect.entries)),
        *named("embedding.norm", "norm_pre"),
        *named("encoder.norm", dialect.norm),
        *named("head.norm", "fc_norm"),
        *named("head.representation", "pre_logits.fc"),  # of files before 2022
        Entry("head.pool.probe", ("attn_pool.latent",), BATCHED),
        *named("head.pool.query", "attn_pool.q"),
        *named("head.pool.key_value", "attn_pool.kv"),
        *named("head.pool.out", "attn_pool.proj"),
        *named("head.pool.norm", "attn_pool.norm"),
        *named("head.pool.mlp.hidden", "attn_pool.mlp.fc1"),
        *named("head.pool.mlp.out", "attn_pool.mlp.fc2"),
        *_head(config),
    ]
    for layer in range(config.depth):
        table += _block(config, dialect, f"encoder.blocks.{layer}", f"blocks.{layer}")
    table += _backbone(config.backbone.blocks) if config.backbone else []
    return [entry if entry.theirs[0] not in dialect.absent else Entry(entry.ours, ()) for entry in table]


def _positions(config: ViTConfig, entries: int) -> Codec:
    """Choose the codec by which tokens before the patches have an entry."""
    if entries == 0 and config.class_token:
        return WITHOUT_CLASS_ENTRY
    return (
        BATCHED if entries <= 1 else with_zero_rows(int(bool(config.class_token)), entries - bool(config.class_token))
    )


def _head(config: ViTConfig) -> Layout:
    if config.pool == "distilled":
        return [
            Entry("head.linear.weight", ("head.weight", "head_dist.weight"), AVERAGED_KERNELS),
            Entry("head.linear.bias", ("head.bias", "head_dist.bias"), AVERAGED_BIASES),
        ]
    if config.projection_size:  # timm calls it a head, and gives it a bias of zeros
        return [Entry("head.projection.weight", ("head.weight", "head.bias"), WITH_ZERO_BIAS)]
    return named("head.linear", "head")


def _block(config: ViTConfig, dialect: Dialect, ours: str, theirs: str) -> Layout:
    parts = {"norm1": "norm1", "attention.out": "attn.proj", "norm2": "norm2", "mlp.out": "mlp.fc2"}
    table = [entry for name, part in parts.items() for entry in named(f"{ours}.{name}", f"{theirs}.{part}")]
    table += [Entry(f"{ours}.scale{branch}", (f"{theirs}.{dialect.scales.format(branch)}",)) for branch in (1, 2)]
    for part in ("weight", "bias"):
        names, codec = _stack(dialect, theirs, part)
        codec = codec if dialect.order is None else permuted(codec, dialect.order)
        table.append(Entry(f"{ours}.attention.qkv.{part}", names, codec))
    if config.mlp == "gelu":
        return table + named(f"{ours}.mlp.hidden", f"{theirs}.mlp.fc1")
    if not dialect.packed:
        return (
            table
            + named(f"{ours}.mlp.gate", f"{theirs}.mlp.fc1_g")
            + named(f"{ours}.mlp.hidden", f"{theirs}.mlp.fc1_x")
        )
    middle, end = config.mlp_dim, 2 * config.mlp_dim
    table += named(f"{ours}.mlp.gate", f"{theirs}.mlp.fc1", rows(0, middle))
    return table + named(f"{ours}.mlp.hidden", f"{theirs}.mlp.fc1", rows(middle, end))


def _stack(dialect: Dialect, theirs: str, part: str) -> tuple[tuple[str, ...], Codec]:
    """Return the tensors of queries, keys and values, and how they become one."""
    split = tuple(f"{theirs}.attn.{kind}_proj.{part}" for kind in "qkv")
    if dialect.split and split[1] in dialect.absent and split[0] not in dialect.absent:
        return split[::2], QUERY_AND_VALUE
    if dialect.split:
        return split, stacked(3)
    fused = f"{theirs}.attn.qkv.{part}"
    pair = (f"{theirs}.attn.q_bias", f"{theirs}.attn.v_bias")
    if part == "bias" and fused in dialect.absent and pair[0] not in dialect.absent:
        return pair, QUERY_AND_VALUE
    return (fused,), COPY


def _backbone(blocks: tuple[int, ...]) -> Layout:
    """List the ResNet of a hybrid; without stages timm keeps the root alone."""
    root = f"{BACKBONE}.stem" if blocks else BACKBONE
    table = named("backbone.root.conv", f"{root}.conv", parts=("weight",)) + named("backbone.root.norm", f"{root}.norm")
    for stage, units in enumerate(blocks):
        for unit in range(units):
            ours, theirs = f"backbone.stages.{stage}.{unit}", f"{BACKBONE}.stages.{stage}.blocks.{unit}"
            for number in (1, 2, 3):
                table += named(f"{ours}.conv{number}", f"{theirs}.conv{number}", parts=("weight",))
                table += named(f"{ours}.norm{number}", f"{theirs}.norm{number}")
            table += named(f"{ours}.shortcut.conv", f"{theirs}.downsample.conv", parts=("weight",))
            table += named(f"{ours}.shortcut.norm", f"{theirs}.downsample.norm")
    return table
