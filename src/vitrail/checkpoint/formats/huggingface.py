"""Hugging Face's Vision Transformers: a folder with `config.json`, `model.safetensors` and `preprocessor_config.json`.

ViT, DeiT, MAE, MSN, I-JEPA, DINOv2 with and without registers, DINOv3, and the image towers of CLIP and SigLIP. The
names on disk and those that transformers 5 keeps in memory are both read; the former are written.
"""

import math
import re
from collections.abc import Mapping
from typing import Any

from vitrail.base.errors import CheckpointError
from vitrail.base.tensors import TensorSource
from vitrail.checkpoint.contents import Contents
from vitrail.checkpoint.formats.fold import fold_prefix
from vitrail.checkpoint.formats.folder import setting
from vitrail.checkpoint.formats.format import Weights
from vitrail.checkpoint.formats.huggingface_names import Dialect, layout, our_name, with_our_names
from vitrail.checkpoint.formats.huggingface_pixels import read_pixels
from vitrail.checkpoint.formats.huggingface_types import GELUS, TYPES, VIT, Type, type_of
from vitrail.checkpoint.infer import Grid, Hints, count_blocks, state_size, tell_grid, tell_heads
from vitrail.checkpoint.layout import read_layout
from vitrail.model.config import Pool, ViTConfig
from vitrail.model.gelu import Gelu
from vitrail.model.rotary import RotaryConfig

# A class that computes something else with the same weights -> why.
_DIFFERENT = {
    "ViTForMaskedImageModeling": "a decoder of pixels",
    "DeiTForMaskedImageModeling": "a decoder of pixels",
}


def recognises(names: set[str]) -> bool:
    """Return whether a state dict is a Vision Transformer of transformers, with or without a classifier around it."""
    return any(our_name(name) == "patch.weight" for name in names)


def read(weights: Weights) -> Contents:
    """Read a state dict, with the two JSON files beside it where there are any."""
    settings = weights.settings
    kind = type_of(settings, weights.source.origin)
    _check_settings(settings, weights.source.origin)
    tower = setting(settings, "vision_config", dict, settings)
    source, notes = with_our_names(weights.source)
    kind = kind or _likely_type(source)
    source, aside = _used(source, settings)
    config, grid, more = _infer(source, kind, tower, weights.hints, settings)
    if grid.extra > bool(config.class_token):
        source = fold_prefix(source, "positions", {"distillation_token": 1}, first=1)
    tensors = read_layout(
        layout(config, _dialect(source, config, kind, tower)),
        source,
        config,
        f"the Hugging Face model ({kind.name}) that it describes",
    )
    pixels, doubt = read_pixels(weights.pixels, kind.name, config.image_size, config.channels, source.origin)
    return Contents(
        format="huggingface",
        config=config,
        tensors=tensors,
        labels=_labels(settings, config.num_classes),
        preprocessing=pixels,
        doubt=doubt,
        notes=notes + aside + more,
    )


def _likely_type(source: TensorSource) -> Type:
    """Infer the type of weights without their `config.json`."""
    if "positions" not in source:
        return TYPES["dinov3_vit"]
    if "pre_norm.weight" in source:
        return TYPES["clip"]
    if "pool.probe" in source:
        return TYPES["siglip"]
    if "blocks.0.scale1" in source:
        return TYPES["dinov2_with_registers" if "registers" in source else "dinov2"]
    return TYPES["deit"] if "distillation_token" in source else VIT


def _check_settings(settings: Mapping[str, Any], origin: str) -> None:
    """Refuse a class or an activation that is not of these models, by name."""
    classes = settings.get("architectures")
    for name in classes if isinstance(classes, list) else ():
        if name in _DIFFERENT:
            raise CheckpointError(f"{origin} is a {name}, which has {_DIFFERENT[name]}; save its encoder alone.")
    act = settings.get("pooler_act", "tanh")
    if act != "tanh":
        raise CheckpointError(f"{origin} has the activation {act!r} in its pooler (pooler_act); only tanh is read.")


def _used(source: TensorSource, settings: Mapping[str, Any]) -> tuple[TensorSource, tuple[str, ...]]:
    """Leave aside layers of the tower that its classifier does not see: these models take the mean of all tokens."""
    classes = settings.get("architectures") or ["?"]
    unused = {"SiglipForImageClassification": r"pool\.", "CLIPForImageClassification": r"norm\."}
    pattern = unused.get(classes[0]) if isinstance(classes, list) else None
    if pattern is None or "classifier.weight" not in source:
        return source, ()
    names = {name: name for name in source if not re.match(pattern, name)}
    note = (
        () if len(names) == len(source) else ("a layer of the file that its classifier does not see was left aside.",)
    )
    return source.renamed(names), note


def _infer(
    source: TensorSource, kind: Type, tower: dict[str, Any], hints: Hints, settings: Mapping[str, Any]
) -> tuple[ViTConfig, Grid, tuple[str, ...]]:
    """Infer sizes from the tensors, what they do not show from `config.json`, and what was assumed."""
    dim, channels, height, width = source.shape("patch.weight", 4)
    registers = source.shape("registers", 3)[1] if "registers" in source else 0
    class_token, distilled = "class_token" in source, "distillation_token" in source
    grid = _infer_grid(source, kind, tower, (height, width), hints, prefix=class_token + distilled)
    depth = count_blocks(source, r"blocks\.(\d+)\.")
    packed = "blocks.0.packed.weight" in source
    mlp_dim = source.shape(f"blocks.0.{'packed' if packed else 'hidden'}.weight", 2)[0] // (2 if packed else 1)
    known = dict(hints)
    if "num_attention_heads" in tower:
        known["num_heads"] = setting(tower, "num_attention_heads", int, 0)
    heads, notes = tell_heads(dim, depth, mlp_dim, known, source.origin)
    gated = packed or "blocks.0.gate.weight" in source
    scaled = "blocks.0.scale1" in source
    pool = _infer_pool(source, kind)
    config = ViTConfig(
        dim=dim,
        depth=depth,
        num_heads=heads,
        mlp_dim=mlp_dim,
        patch_size=(height, width),
        image_size=grid.image_size,
        channels=channels,
        num_classes=_num_classes(source),
        pool=pool,
        class_token=class_token,
        distillation_token=distilled,
        registers=registers,
        norm_embedded="pre_norm.weight" in source,
        norm_encoded="norm.weight" in source,
        representation_size=source.shape("pooler.weight", 2)[0] if "pooler.weight" in source else None,
        projection_size=source.shape("visual_projection.weight", 2)[0]
        if "visual_projection.weight" in source
        else None,
        positions="learned-1d" if "positions" in source else "none",
        position_resize=kind.resize,
        rotary=RotaryConfig(base=setting(tower, "rope_theta", float, 100.0)) if kind.name == "dinov3_vit" else None,
        trim=grid.trim,
        mlp="swiglu" if gated else "gelu",
        layer_scale=setting(tower, "layerscale_value", float, 1.0) if scaled else None,
        gelu=_infer_gelu(source, kind, tower, hints, settings, gated=gated),
        norm_eps=setting(tower, "layer_norm_eps", float, kind.norm_eps),
        dropout=setting(tower, "hidden_dropout_prob", float, 0.0),
        attention_dropout=setting(
            tower, "attention_probs_dropout_prob", float, setting(tower, "attention_dropout", float, 0.0)
        ),
    )
    return config, grid, notes


def _infer_grid(
    source: TensorSource, kind: Type, tower: Mapping[str, Any], cell: tuple[int, int], hints: Hints, *, prefix: int
) -> Grid:
    sizes = state_size(tower, "image_size")
    if "positions" not in source:
        size = hints.get("image_size") or next(iter(sizes), (kind.image_size, kind.image_size))
        return Grid(size, 0, bool(size[0] % cell[0] or size[1] % cell[1]))
    shape = source.specs["positions"].shape
    count = source.shape("positions", len(shape) if len(shape) == 2 else 3)[-2]
    if kind.name.startswith("dinov2"):  # whose tables are square, whatever images they are resized for
        side = math.isqrt(max(count - prefix, 0))
        sizes.append((side * cell[0], side * cell[1]))
    return tell_grid(count, cell, extras=(prefix,), hints=hints, origin=source.origin, sizes=sizes)


def _infer_pool(source: TensorSource, kind: Type) -> Pool:
    if "cls_classifier.weight" in source:
        return "distilled"
    if "pool.probe" in source:
        return "attention"
    if "class_token" not in source or (kind.name == "clip" and "classifier.weight" in source):
        return "mean"
    return "class-and-mean" if kind.name.startswith("dinov2") and "classifier.weight" in source else "class-token"


def _infer_gelu(
    source: TensorSource, kind: Type, tower: dict[str, Any], hints: Hints, settings: Mapping[str, Any], *, gated: bool
) -> Gelu:
    """Return the activation; a gate always has SiLU."""
    act = setting(tower, "hidden_act", str, kind.act)
    if gated:
        if kind.name == "dinov3_vit" and "model_type" in settings and act not in ("silu", "swish"):
            raise CheckpointError(f"{source.origin} has the activation {act!r} in a gated MLP; only silu is read.")
        return "erf"
    if "gelu" in hints:
        gelu: Gelu = hints["gelu"]
        return gelu
    if "model_type" not in settings and kind.name == "clip":
        raise CheckpointError(
            f"{source.origin} does not state its gelu, and image towers of CLIP differ: OpenAI's have quick, "
            "OpenCLIP's erf; give gelu."
        )
    if act not in GELUS:
        raise CheckpointError(f"{source.origin} has the activation {act!r}; only {', '.join(GELUS)} are GELU.")
    return GELUS[act]


def _num_classes(source: TensorSource) -> int:
    heads = [name for name in ("classifier.weight", "cls_classifier.weight") if name in source]
    return source.shape(heads[0], 2)[0] if heads else 0


def _dialect(source: TensorSource, config: ViTConfig, kind: Type, tower: dict[str, Any]) -> Dialect:
    """Return the way of writing, and which biases the settings leave out."""
    missing: list[str] = []
    if not setting(tower, "qkv_bias", bool, True):
        missing = ["query", "key", "value"]
    elif kind.name == "dinov3_vit":
        flags = {"query": "query_bias", "key": "key_bias", "value": "value_bias", "out": "proj_bias"}
        flags |= dict.fromkeys(("hidden", "gate", "shrink"), "mlp_bias")
        missing = [name for name, flag in flags.items() if not setting(tower, flag, bool, flag != "key_bias")]
    absent = {f"blocks.{layer}.{name}.bias" for layer in range(config.depth) for name in missing}
    return Dialect(
        flat="positions" in source and len(source.specs["positions"].shape) == 2,
        packed="blocks.0.packed.weight" in source,
        absent=frozenset(absent | ({"patch.bias"} if config.norm_embedded else set())),
    )


def _labels(settings: Mapping[str, Any], num_classes: int) -> tuple[str, ...] | None:
    """Return the class names, unless they are the numbers that transformers makes up."""
    names = settings.get("id2label")
    if not isinstance(names, dict) or num_classes == 0 or len(names) != num_classes:
        return None
    labels = tuple(str(names.get(str(number), f"LABEL_{number}")) for number in range(num_classes))
    return None if labels == tuple(f"LABEL_{number}" for number in range(num_classes)) else labels
