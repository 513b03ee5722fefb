"""timm's Vision Transformers and hybrids: a state dict, or a folder with `config.json` beside it."""

from pathlib import Path
from typing import Any

from vitrail.base.errors import CheckpointError
from vitrail.base.tensors import TensorSource
from vitrail.checkpoint.contents import Contents
from vitrail.checkpoint.formats.abilities import Abilities
from vitrail.checkpoint.formats.folder import setting, write_json, write_state
from vitrail.checkpoint.formats.format import Format, Weights
from vitrail.checkpoint.formats.timm_settings import how_to_build, read_labels, read_preprocessing, settings_of
from vitrail.checkpoint.infer import Hints, count_blocks, tell_grid, tell_heads, tell_stages
from vitrail.checkpoint.layout import (
    BATCHED,
    WITHOUT_CLASS_ENTRY,
    Entry,
    Layout,
    named,
    patches_oihw,
    read_layout,
    write_layout,
)
from vitrail.model.backbone import BackboneConfig
from vitrail.model.config import Pool, ViTConfig

_BACKBONE_NUMERICS: dict[str, Any] = {
    "norm_groups": 32,
    "norm_eps": 1e-5,
    "standardisation": "sqrt-var-eps",
    "standardisation_eps": 1e-8,
}
BACKBONE = "patch_embed.backbone"
# Parts of timm's other models, and what to call them when they are refused.
FOREIGN = {
    ".ls1.": "LayerScale (DINOv2, DeiT III)",
    "dist_token": "a distillation token (DeiT)",
    "reg_token": "register tokens",
    ".q_norm.": "normalised queries and keys",
    "norm_pre.": "a LayerNorm before the encoder (CLIP)",
    "decoder_embed": "a masked autoencoder's decoder",
    "rel_pos": "relative positions of another kind",
}


def recognises(names: set[str]) -> bool:
    """Tell whether a state dict is a Vision Transformer of timm."""
    return "patch_embed.proj.weight" in names and any(name.startswith("blocks.0.") for name in names)


def read(weights: Weights) -> Contents:
    """Read a state dict, with the `config.json` beside it if there is one."""
    source, settings = weights.source, weights.settings
    foreign = sorted({kind for name in source for part, kind in FOREIGN.items() if part in name})
    if foreign:
        raise CheckpointError(
            f"{source.origin} is a timm model with {', '.join(foreign)}, which the paper's Vision Transformer does not "
            "have; only models without are read."
        )
    arguments = setting(settings, "model_args", dict, {})
    known = {"num_heads": setting(arguments, "num_heads", int, 0)} if "num_heads" in arguments else {}
    config, class_entry, notes = _infer(source, dict(weights.hints) | known, arguments)
    tensors = read_layout(layout(config, class_entry=class_entry), source, config, "the timm model that it tells of")
    return Contents(
        format="timm",
        config=config,
        tensors=tensors,
        labels=read_labels(settings.get("label_names"), config.num_classes),
        preprocessing=read_preprocessing(settings, config.image_size, config.channels),
        notes=notes,
    )


def write(contents: Contents, path: Path) -> Contents:
    """Write a state dict, or into a folder what `timm.create_model("local-dir:...", pretrained=True)` reads."""
    config = contents.config
    assert isinstance(config, ViTConfig)  # noqa: S101 - the format holds no others
    state = write_layout(layout(config, class_entry=bool(config.class_token)), contents.tensors)
    if path.suffix == ".safetensors":
        write_state(state, path, contents)
        return contents.noting(how_to_build(config))
    if config.backbone is not None or config.norm_eps != 1e-6:
        has = "a backbone" if config.backbone else f"norm_eps={config.norm_eps}"
        raise CheckpointError(
            "timm's folders name a model of its own list, which has no hybrids of other sizes and no other LayerNorm "
            f"epsilon than 1e-6, but this model has {has}; "
            "write a .safetensors file instead."
        )
    write_state(state, path / "model.safetensors", contents)
    write_json(path / "config.json", settings_of(contents, config))
    return contents


def layout(config: ViTConfig, *, class_entry: bool) -> Layout:
    """List every tensor."""
    positions = BATCHED if class_entry == bool(config.class_token) else WITHOUT_CLASS_ENTRY
    table = [
        Entry("embedding.projection.weight", ("patch_embed.proj.weight",), patches_oihw(config.patch_size)),
        Entry("embedding.projection.bias", ("patch_embed.proj.bias",)),
        Entry("embedding.class_token", ("cls_token",), BATCHED),
        Entry("embedding.positions.table", ("pos_embed",), positions),
        *named("encoder.norm", "norm"),
        *named("head.norm", "fc_norm"),
        Entry("head.pool.probe", ("attn_pool.latent",), BATCHED),
        *named("head.pool.query", "attn_pool.q"),
        *named("head.pool.key_value", "attn_pool.kv"),
        *named("head.pool.out", "attn_pool.proj"),
        *named("head.pool.norm", "attn_pool.norm"),
        *named("head.pool.mlp.hidden", "attn_pool.mlp.fc1"),
        *named("head.pool.mlp.out", "attn_pool.mlp.fc2"),
        *named("head.linear", "head"),
    ]
    parts = {
        "norm1": "norm1",
        "attention.qkv": "attn.qkv",
        "attention.out": "attn.proj",
        "norm2": "norm2",
        "mlp.hidden": "mlp.fc1",
        "mlp.out": "mlp.fc2",
    }
    for layer in range(config.depth):
        for ours, theirs in parts.items():
            table += named(f"encoder.blocks.{layer}.{ours}", f"blocks.{layer}.{theirs}")
    return table + (_backbone(config.backbone.blocks) if config.backbone else [])


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


def _infer(source: TensorSource, hints: Hints, arguments: dict[str, Any]) -> tuple[ViTConfig, bool, tuple[str, ...]]:
    """Tell every size from the tensors, whether the class token has a position, and what was assumed."""
    dim, inputs, height, width = source.shape("patch_embed.proj.weight", 4)
    backbone, channels = _infer_backbone(source, inputs)
    stride = backbone.stride if backbone else 1
    class_token = "cls_token" in source
    norm_pooled = "fc_norm.weight" in source
    pool: Pool = "class-token" if class_token else "mean"
    pool = "attention" if "attn_pool.latent" in source else "mean" if norm_pooled else pool
    given = {"avg": "mean", "token": "class-token", "map": "attention"}.get(str(arguments.get("global_pool")), pool)
    image_size, class_entry = hints.get("image_size", (224, 224)), class_token
    if "pos_embed" in source:
        image_size, class_entry = tell_grid(
            source.shape("pos_embed", 3)[1],
            (height * stride, width * stride),
            class_token=class_token,
            hints=hints,
            origin=source.origin,
        )
    depth = count_blocks(source, r"blocks\.(\d+)\.")
    mlp_dim = source.shape("blocks.0.mlp.fc1.weight", 2)[0]
    heads, notes = tell_heads(dim, depth, mlp_dim, hints, source.origin)
    config = ViTConfig(
        dim=dim,
        depth=depth,
        num_heads=heads,
        mlp_dim=mlp_dim,
        patch_size=(height, width),
        image_size=image_size,
        channels=channels,
        num_classes=source.shape("head.weight", 2)[0] if "head.weight" in source else 0,
        backbone=backbone,
        pool=hints.get("pool", given),
        class_token=class_token,
        norm_pooled=norm_pooled,
        positions="learned-1d" if "pos_embed" in source else "none",
        position_resize="timm",
        gelu="tanh" if arguments.get("act_layer") == "gelu_tanh" else "erf",
        norm_eps=1e-6,
    )
    return config, class_entry, notes


def _infer_backbone(source: TensorSource, inputs: int) -> tuple[BackboneConfig | None, int]:
    names = [name for name in (f"{BACKBONE}.stem.conv.weight", f"{BACKBONE}.conv.weight") if name in source]
    if not names:
        return None, inputs
    width, channels, _, _ = source.shape(names[0], 4)
    stages = tell_stages(
        source, rf"{BACKBONE}\.stages\.(\d+)\.blocks\.(\d+)\.".replace("patch_embed.", r"patch_embed\.")
    )
    return BackboneConfig(blocks=stages, width=width, **_BACKBONE_NUMERICS), channels


FORMAT = Format(
    name="timm",
    suffixes=(".safetensors", ""),
    abilities=Abilities(
        library="timm",
        hybrid=True,
        pools=("class-token", "mean", "attention"),
        idle_class_token=True,
        norm_pooled=True,
        positions=("learned-1d", "none"),
        backbone_numerics=_BACKBONE_NUMERICS,
    ),
    recognises=recognises,
    read=read,
    write=write,
)
