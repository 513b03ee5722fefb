"""The sizes and the structure of a timm model, from its tensors, from what lies beside them, and from what is known."""

from collections.abc import Mapping
from typing import Any

from vitrail.base.errors import CheckpointError
from vitrail.base.tensors import TensorSource
from vitrail.checkpoint.formats.folder import setting
from vitrail.checkpoint.formats.timm_facts import GELUS, POOLS, Facts, rotary_config, row_order
from vitrail.checkpoint.formats.timm_layout import BACKBONE, Dialect
from vitrail.checkpoint.infer import Grid, count_blocks, state_size, tell_grid, tell_stages
from vitrail.model.backbone import BackboneConfig
from vitrail.model.config import Pool, ViTConfig
from vitrail.model.gelu import Gelu
from vitrail.model.patches import Size

BACKBONE_NUMERICS: dict[str, Any] = {
    "norm_groups": 32,
    "norm_eps": 1e-5,
    "standardisation": "sqrt-var-eps",
    "standardisation_eps": 1e-8,
}
USUAL_SCALE = 1e-5
"""The initial value of LayerScale, where nothing states it; weights that are read do not depend on it."""
CLASS_ENTRY_ONLY = "class_entry_only"
"""What the names of a release may tell: that its registers have no positions, though its class token has one."""
_BIASES = (
    "attn.qkv",
    "attn.q_proj",
    "attn.k_proj",
    "attn.v_proj",
    "attn.proj",
    "mlp.fc1",
    "mlp.fc1_g",
    "mlp.fc1_x",
    "mlp.fc2",
)


def infer(
    source: TensorSource, facts: Facts, settings: Mapping[str, Any], rotary: Mapping[str, Any] | None
) -> tuple[ViTConfig, Grid]:
    """Return the config, and what the table of positions is for."""
    dim, inputs, height, width = source.shape("patch_embed.proj.weight", 4)
    backbone, channels = _infer_backbone(source, inputs)
    stride = backbone.stride if backbone else 1
    prefix = sum(source.shape(name, 3)[1] for name in ("cls_token", "dist_token", "reg_token") if name in source)
    grid = _infer_grid(source, facts, settings, (height * stride, width * stride), prefix)
    pool = _infer_pool(source, facts, settings)
    gated = "blocks.0.mlp.fc1_g.weight" in source
    mlp_dim = source.shape("blocks.0.mlp.fc1_x.weight" if gated else "blocks.0.mlp.fc1.weight", 2)[0]
    packed = not gated and mlp_dim == 2 * source.shape("blocks.0.mlp.fc2.weight", 2)[1]
    swiglu = gated or packed
    scaled = "blocks.0.ls1.gamma" in source or "blocks.0.gamma_1" in source
    projection = _projection(source, pool)
    pooled_norm = "fc_norm.weight" in source and pool == "mean"
    config = ViTConfig(
        dim=dim,
        depth=count_blocks(source, r"blocks\.(\d+)\."),
        num_heads=facts.tell("heads", setting(dict(facts.arguments), "num_heads", int, 0) or None),
        mlp_dim=mlp_dim // 2 if packed else mlp_dim,
        patch_size=(height, width),
        image_size=grid.image_size,
        channels=channels,
        num_classes=source.shape("head.weight", 2)[0] if "head.weight" in source and not projection else 0,
        backbone=backbone,
        pool=pool,
        pool_prefix=_infer_prefix(facts) if prefix and pool in ("mean", "attention") else None,
        pool_heads=_infer_pool_heads(facts) if pool == "attention" else None,
        class_token="cls_token" in source,
        distillation_token="dist_token" in source,
        registers=source.shape("reg_token", 3)[1] if "reg_token" in source else 0,
        norm_embedded="norm_pre.weight" in source,
        norm_encoded="norm.weight" in source or "fc_norm.weight" in source,
        norm_pooled=pooled_norm,
        representation_size=source.shape("pre_logits.fc.weight", 2)[0] if "pre_logits.fc.weight" in source else None,
        projection_size=projection,
        positions="learned-1d" if "pos_embed" in source else "none",
        position_resize=facts.hints.get("position_resize", "timm"),
        rotary=rotary_config(rotary),
        trim=grid.trim,
        mlp="swiglu" if swiglu else "gelu",
        layer_scale=setting(dict(facts.arguments), "init_values", float, USUAL_SCALE) if scaled else None,
        gelu="erf" if swiglu else _infer_gelu(facts),
        norm_eps=facts.tell("norm_eps"),
    )
    return config, grid


def _infer_grid(source: TensorSource, facts: Facts, settings: Mapping[str, Any], cell: Size, prefix: int) -> Grid:
    """Infer the image size from arguments, from `pretrained_cfg`, from the published files, from the positions."""
    stated = state_size(facts.arguments, "img_size")
    published_size = setting(dict(settings), "pretrained_cfg", dict, {}).get("input_size")
    stated += state_size({"size": published_size[1:]}, "size") if isinstance(published_size, list) else []
    ways = [way for row in facts.rows.values() for way in row["tags"].values()] if facts.sized else []
    published = list(dict.fromkeys((way[4][0], way[4][1]) for way in ways))
    if "pos_embed" not in source:
        sizes = [facts.hints["image_size"]] if "image_size" in facts.hints else stated or published
        if not sizes or (not stated and len(sizes) > 1):
            raise CheckpointError(f"{source.origin} does not state for which images it was made; give image_size.")
        return Grid(sizes[0], 0, any(side % step for side, step in zip(sizes[0], cell, strict=True)))
    count = source.shape("pos_embed", 3)[1]
    extras = (1,) if facts.hints.get(CLASS_ENTRY_ONLY) else (prefix, 0)

    def fits(size: Size) -> bool:
        return count - (size[0] // cell[0]) * (size[1] // cell[1]) in extras

    published = [size for size in published if fits(size)]
    if "image_size" not in facts.hints and not any(map(fits, stated)) and len(published) > 1:
        choices = " and ".join(f"{height}x{width}" for height, width in published)
        raise CheckpointError(
            f"{source.origin} does not state for which images it was made, and published models like it are for "
            f"{choices}; give image_size."
        )
    return tell_grid(count, cell, extras=extras, hints=facts.hints, origin=source.origin, sizes=stated + published)


def _infer_pool(source: TensorSource, facts: Facts, settings: Mapping[str, Any]) -> Pool:
    """Infer what the head sees by settings, by known architectures, and by which layers there are."""
    if "dist_token" in source:
        return "distilled"
    word = setting(dict(settings) | dict(facts.arguments), "global_pool", str, "")
    if word and word not in POOLS and "pool" not in facts.hints:
        raise CheckpointError(
            f"{source.origin} is a timm model that pools by {word!r}; only {', '.join(POOLS)} are read."
        )
    if not (facts.sized and facts.rows) and not word and "pool" not in facts.hints:
        if "attn_pool.latent" in source:
            return "attention"
        return "class-token" if "cls_token" in source and "fc_norm.weight" not in source else "mean"
    pooled_norm = "fc_norm.weight" in source
    if (
        not word
        and "pool" not in facts.hints
        and all(("fc-norm" in row["parts"]) != pooled_norm for row in facts.rows.values())
    ):
        raise CheckpointError(
            f"{source.origin} has {'a LayerNorm after pooling (fc_norm)' if pooled_norm else 'no fc_norm'}, unlike "
            f"{next(iter(facts.rows))} in timm, so it may pool otherwise; give pool."
        )
    pool: Pool = facts.tell("pool", POOLS.get(word))
    return pool


def _infer_prefix(facts: Facts) -> bool:
    """Return whether pooling sees the tokens before the patches: in timm's VisionTransformer only when asked to."""
    stated = facts.arguments.get("pool_include_prefix")
    return bool(next((row.get("prefix") for row in facts.rows.values()), False)) if stated is None else bool(stated)


def _infer_pool_heads(facts: Facts) -> int | None:
    """Tell the heads of attention pooling, where they are others than those of the blocks."""
    known = next((row.get("pool_heads") for row in facts.rows.values()), None)
    return setting(dict(facts.arguments), "attn_pool_num_heads", int, 0) or known


def _infer_gelu(facts: Facts) -> Gelu:
    word = setting(dict(facts.arguments), "act_layer", str, "")
    if word and word not in GELUS and "gelu" not in facts.hints:
        raise CheckpointError(f"{facts.origin} has the activation {word!r}; only {', '.join(GELUS)} are read.")
    gelu: Gelu = facts.tell("gelu", GELUS.get(word))
    return gelu


def _projection(source: TensorSource, pool: Pool) -> int | None:
    """Distinguish CLIP's projection, which timm calls a head with a bias of zeros, from a head of classes."""
    clip = "norm_pre.weight" in source and "head.weight" in source and pool != "mean"
    return source.shape("head.weight", 2)[0] if clip and not source["head.bias"].any() else None


def _infer_backbone(source: TensorSource, inputs: int) -> tuple[BackboneConfig | None, int]:
    names = [name for name in (f"{BACKBONE}.stem.conv.weight", f"{BACKBONE}.conv.weight") if name in source]
    if not names:
        return None, inputs
    width, channels, _, _ = source.shape(names[0], 4)
    stages = tell_stages(
        source, rf"{BACKBONE}\.stages\.(\d+)\.blocks\.(\d+)\.".replace("patch_embed.", r"patch_embed\.")
    )
    return BackboneConfig(blocks=stages, width=width, **BACKBONE_NUMERICS), channels


def dialect_of(
    source: TensorSource, config: ViTConfig, facts: Facts, rotary: Mapping[str, Any] | None, *, entries: int
) -> Dialect:
    """Return the way of writing, and which biases are left out."""
    missing = [
        name for name in _BIASES if f"blocks.0.{name}.weight" in source and f"blocks.0.{name}.bias" not in source
    ]
    absent = {f"blocks.{layer}.{name}.bias" for layer in range(config.depth) for name in missing}
    absent |= (
        {f"blocks.{layer}.attn.q_bias" for layer in range(config.depth)}
        if "blocks.0.attn.q_bias" not in source
        else set()
    )
    absent |= {"patch_embed.proj.bias"} - set(source)
    if missing and not facts.rows:
        raise CheckpointError(
            f"{source.origin} leaves out biases ({', '.join(missing)}) as no model of timm does that is known here; "
            "give the model's name in timm as architecture."
        )
    return Dialect(
        entries=entries,
        norm="norm" if "norm.weight" in source else "fc_norm",
        scales="gamma_{}" if "blocks.0.gamma_1" in source else "ls{}.gamma",
        split="blocks.0.attn.q_proj.weight" in source,
        packed="blocks.0.mlp.fc1.weight" in source,
        order=row_order(rotary, config.dim, config.num_heads),
        absent=absent,
    )
