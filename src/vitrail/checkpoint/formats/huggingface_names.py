"""What transformers calls the parts of its Vision Transformers: one word of ours for each, whatever the family.

A family writes its own names; reading takes those of any family, on disk and in the memory of transformers 5, so that
one layout is enough for all of them.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from vitrail.base.errors import CheckpointError
from vitrail.base.tensors import TensorSource
from vitrail.checkpoint.layout import (
    AVERAGED_BIASES,
    AVERAGED_KERNELS,
    BATCHED,
    COPY,
    QUERY_AND_VALUE,
    Codec,
    Entry,
    Layout,
    named,
    patches_oihw,
    rows,
    single,
    stacked,
    with_zero_rows,
)
from vitrail.model.config import ViTConfig

FLAT_TOKEN = single(lambda theirs: theirs[None], lambda ours: ours[0])
# Our word -> the names that families give it; a block's parts stand below `blocks.N`.
OUTSIDE: dict[str, tuple[str, ...]] = {
    "patch": ("embeddings.patch_embeddings.projection", "embeddings.patch_embeddings", "embeddings.patch_embedding"),
    "class_token": ("embeddings.cls_token", "embeddings.class_embedding"),
    "distillation_token": ("embeddings.distillation_token",),
    "registers": ("embeddings.register_tokens",),
    "positions": ("embeddings.position_embeddings", "embeddings.position_embedding.weight"),
    "pre_norm": ("pre_layrnorm",),
    "norm": ("layernorm", "post_layernorm", "norm"),
    "pooler": ("pooler.dense",),
    "pool.probe": ("head.probe",),
    "pool.stack": ("head.attention.in_proj",),
    "pool.out": ("head.attention.out_proj",),
    "pool.norm": ("head.layernorm",),
    "pool.hidden": ("head.mlp.fc1",),
    "pool.shrink": ("head.mlp.fc2",),
}
BLOCK = ("encoder.layer", "encoder.layers", "layers", "model.layer", "layer")
INSIDE: dict[str, tuple[str, ...]] = {
    "norm1": ("layernorm_before", "norm1", "layer_norm1"),
    "norm2": ("layernorm_after", "norm2", "layer_norm2"),
    "query": ("attention.attention.query", "attention.q_proj", "self_attn.q_proj"),
    "key": ("attention.attention.key", "attention.k_proj", "self_attn.k_proj"),
    "value": ("attention.attention.value", "attention.v_proj", "self_attn.v_proj"),
    "out": ("attention.output.dense", "attention.o_proj", "self_attn.out_proj"),
    "scale1": ("layer_scale1.lambda1",),
    "scale2": ("layer_scale2.lambda1",),
    "hidden": ("intermediate.dense", "mlp.fc1", "mlp.up_proj"),
    "gate": ("mlp.gate_proj",),
    "packed": ("mlp.weights_in",),
    "shrink": ("output.dense", "mlp.fc2", "mlp.down_proj", "mlp.weights_out"),
}
HEADS = ("classifier", "cls_classifier", "distillation_classifier", "visual_projection")
WRAPPERS = r"(?:vit|deit|ijepa|dinov2|dinov2_with_registers|dinov3_vit|vision_model)\."
# What lies beside an image tower, or beside an encoder in training.
ASIDE = {
    r"text_model\.|text_projection\.|logit_scale$|logit_bias$": "the text tower",
    r"decoder\.": "a decoder",
    r"(embeddings\.)?mask_token$": "a mask token",
    r".*position_ids$|rope_embeddings\.": "a buffer",
}


def our_name(name: str) -> str | None:
    """Return our word for a tensor of theirs, None where there is none."""
    name = re.sub(f"^{WRAPPERS}", "", name)
    block = re.match(rf"(?:{'|'.join(map(re.escape, BLOCK))})\.(\d+)\.(.+)", name)
    table, rest, prefix = (INSIDE, block[2], f"blocks.{block[1]}.") if block else (OUTSIDE, name, "")
    for word, names in table.items():
        for known in names:
            if rest == known or re.fullmatch(rf"{re.escape(known)}[._](weight|bias)", rest):
                return f"{prefix}{word}{rest.removeprefix(known).replace('_', '.')}"
    return name if name.partition(".")[0] in HEADS else None


def with_our_names(source: TensorSource) -> tuple[TensorSource, tuple[str, ...]]:
    """Return the tensors of the image tower by our words, and what was left aside; an unknown one keeps its name."""
    names: dict[str, str] = {}
    aside: list[str] = []
    for name in source:
        bare = re.sub(f"^{WRAPPERS}", "", name)
        kind = next((kind for pattern, kind in ASIDE.items() if re.match(pattern, bare)), None)
        if kind is not None:
            aside += [] if kind == "a buffer" else [kind]
            continue
        if our_name(name) == "registers" and 0 in source.specs[name].shape:  # a model that may have some and has none
            continue
        word = our_name(name) or name
        if word in names:
            raise CheckpointError(
                f"{source.origin} mixes two layouts: {names[word]} and {name} are the same part of a model; get a file "
                "of one model."
            )
        names[word] = name
    kinds = tuple(dict.fromkeys(aside))
    return source.renamed(names), tuple(f"{kind} of the file was left aside." for kind in kinds)


@dataclass(frozen=True, kw_only=True)
class Dialect:
    """How a state dict writes what families write in different ways."""

    flat: bool = False
    """Whether the class token and positions have no axis for the batch (CLIP, SigLIP)."""
    packed: bool = False
    """Whether the gate of SwiGLU lies in one tensor with the hidden layer (DINOv2)."""
    zero_entry: bool = False
    """Whether the distillation token has a position, of zeros, which only files that we write have."""
    absent: frozenset[str] = frozenset()
    """Biases that the file leaves out, by our words."""


def layout(config: ViTConfig, dialect: Dialect) -> Layout:
    """List every tensor by our words."""
    positions = with_zero_rows(1, 1) if dialect.zero_entry else COPY if dialect.flat else BATCHED
    table = [
        Entry("embedding.projection.weight", ("patch.weight",), patches_oihw(config.patch_size)),
        Entry("embedding.projection.bias", ("patch.bias",)),
        Entry("embedding.class_token", ("class_token",), FLAT_TOKEN if dialect.flat else BATCHED),
        Entry("embedding.distillation_token", ("distillation_token",), BATCHED),
        Entry("embedding.registers", ("registers",), BATCHED),
        Entry("embedding.positions.table", ("positions",), positions),
        *named("embedding.norm", "pre_norm"),
        *named("encoder.norm", "norm"),
        *_head(config),
    ]
    for layer in range(config.depth):
        table += _block(config, dialect, f"encoder.blocks.{layer}", f"blocks.{layer}")
    return [entry if entry.theirs[0] not in dialect.absent else Entry(entry.ours, ()) for entry in table]


def _head(config: ViTConfig) -> Layout:
    dim = config.dim
    pool = [
        Entry("head.pool.probe", ("pool.probe",), BATCHED),
        *named("head.pool.query", "pool.stack", rows(0, dim)),
        *named("head.pool.key_value", "pool.stack", rows(dim, 3 * dim)),
        *named("head.pool.out", "pool.out"),
        *named("head.pool.norm", "pool.norm"),
        *named("head.pool.mlp.hidden", "pool.hidden"),
        *named("head.pool.mlp.out", "pool.shrink"),
        *named("head.representation", "pooler"),
        Entry("head.projection.weight", ("visual_projection.weight",)),
    ]
    if config.pool == "distilled":
        both = ("cls_classifier", "distillation_classifier")
        kernels, biases = (tuple(f"{name}.{part}" for name in both) for part in ("weight", "bias"))
        return [
            *pool,
            Entry("head.linear.weight", kernels, AVERAGED_KERNELS),
            Entry("head.linear.bias", biases, AVERAGED_BIASES),
        ]
    return [*pool, *named("head.linear", "classifier")]


def _block(config: ViTConfig, dialect: Dialect, ours: str, theirs: str) -> Layout:
    table = [entry for norm in ("norm1", "norm2") for entry in named(f"{ours}.{norm}", f"{theirs}.{norm}")]
    table += [Entry(f"{ours}.scale{branch}", (f"{theirs}.scale{branch}",)) for branch in (1, 2)]
    for part in ("weight", "bias"):
        parts = tuple(f"{theirs}.{name}.{part}" for name in ("query", "key", "value"))
        without_key = parts[1] in dialect.absent and parts[0] not in dialect.absent
        codec: Codec = QUERY_AND_VALUE if without_key else stacked(3)
        table.append(Entry(f"{ours}.attention.qkv.{part}", parts[::2] if without_key else parts, codec))
    table += named(f"{ours}.attention.out", f"{theirs}.out") + named(f"{ours}.mlp.out", f"{theirs}.shrink")
    if not dialect.packed:
        return table + named(f"{ours}.mlp.hidden", f"{theirs}.hidden") + named(f"{ours}.mlp.gate", f"{theirs}.gate")
    table += named(f"{ours}.mlp.gate", f"{theirs}.packed", rows(0, config.mlp_dim))
    return table + named(f"{ours}.mlp.hidden", f"{theirs}.packed", rows(config.mlp_dim, 2 * config.mlp_dim))


def their_names(words: Iterable[str], family: Mapping[str, str], wrapper: str) -> dict[str, str]:
    """Return the name that a family gives to each of our words; heads stand outside the wrapper."""
    names = {}
    for word in words:
        block = re.match(r"blocks\.(\d+)\.(.+)", word)
        stem, suffix = _split(block[2] if block else word)
        if stem in HEADS:
            names[word] = word
            continue
        place = f"{family['block']}.{block[1]}." if block else ""
        joint = "_" if family.get(stem, "").endswith("in_proj") else "."
        names[word] = f"{wrapper}{place}{family[stem]}{joint + suffix if suffix else ''}"
    return names


def _split(word: str) -> tuple[str, str]:
    stem, _, last = word.rpartition(".")
    return (stem, last) if last in ("weight", "bias") else (word, "")
