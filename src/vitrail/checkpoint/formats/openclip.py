"""Image towers of CLIP with the names of OpenAI's and OpenCLIP's programs: read only.

The whole model or its `visual` alone, with the projection or without. What no tensor shows, the number of heads and
which GELU, stands in `open_clip_config.json`; heads are also known for the published widths.
"""

from collections.abc import Mapping
from typing import Any

from vitrail.base.errors import CheckpointError
from vitrail.base.tensors import TensorSource
from vitrail.checkpoint.contents import Contents
from vitrail.checkpoint.formats.abilities import Abilities
from vitrail.checkpoint.formats.folder import numbers, setting
from vitrail.checkpoint.formats.format import Format, Weights
from vitrail.checkpoint.infer import count_blocks, state_size, tell_grid
from vitrail.checkpoint.layout import COPY, TRANSPOSED, Entry, Layout, named, patches_oihw, read_layout, single
from vitrail.data.preprocessing import Preprocessing, preset
from vitrail.model.config import ViTConfig
from vitrail.model.gelu import Gelu

_FLAT_TOKEN = single(lambda theirs: theirs[None], lambda ours: ours[0])
_HEADS = {384: 6, 512: 8, 640: 10, 768: 12, 896: 14, 1024: 16, 1280: 16, 1408: 16, 1664: 16, 1792: 16}
"""Of published models by width: 64 values for each head, and from 1280 on 16 heads."""
_READ = frozenset(
    {"image_size", "layers", "width", "head_width", "patch_size", "mlp_ratio", "ls_init_value", "patch_dropout"}
)
"""The settings of an image tower that are read, or that change nothing once it is trained."""


def recognises(names: set[str]) -> bool:
    """Return whether a state dict has the image tower of CLIP, alone or beside the text tower."""
    return any(
        {f"{start}conv1.weight", f"{start}class_embedding", f"{start}transformer.resblocks.0.ln_1.weight"} <= names
        and f"{start}ln_post.weight" in names
        and f"{start}attn_pool.probe" not in names
        for start in ("visual.", "")
    )


def read(weights: Weights) -> Contents:
    """Read the image tower, with `open_clip_config.json` beside it if there is one."""
    source, notes = image_tower(weights.source)
    model = setting(weights.settings, "model_cfg", dict, {})
    tower = setting(model, "vision_cfg", dict, {})
    if odd := sorted(tower.keys() - _READ):
        raise CheckpointError(
            f"{source.origin} is a CLIP with settings of its image tower that are not read: {', '.join(odd)}."
        )
    config = _infer(source, model, tower, weights.hints)
    tensors = read_layout(layout(config), source, config, "the image tower of CLIP that it describes")
    pixels = _pixels(setting(weights.settings, "preprocess_cfg", dict, {}), config)
    return Contents(format="openclip", config=config, tensors=tensors, preprocessing=pixels, notes=notes)


def image_tower(source: TensorSource) -> tuple[TensorSource, tuple[str, ...]]:
    """Leave the text tower aside."""
    if "visual.conv1.weight" not in source:
        return source, ()
    tower = source.below("visual.")
    return tower, ("the text tower of the file was left aside.",) if len(tower) < len(source) else ()


def _infer(source: TensorSource, model: dict[str, Any], tower: dict[str, Any], hints: Mapping[str, Any]) -> ViTConfig:
    dim, channels, height, width = source.shape("conv1.weight", 4)
    count = source.shape("positional_embedding", 2)[0]
    sizes = state_size(tower, "image_size")
    grid = tell_grid(count, (height, width), extras=(1,), hints=hints, origin=source.origin, sizes=sizes)
    return ViTConfig(
        dim=dim,
        depth=count_blocks(source, r"transformer\.resblocks\.(\d+)\."),
        num_heads=_heads(source, dim, tower, hints),
        mlp_dim=source.shape("transformer.resblocks.0.mlp.c_fc.weight", 2)[0],
        patch_size=(height, width),
        image_size=grid.image_size,
        trim=grid.trim,
        channels=channels,
        num_classes=0,
        norm_embedded="ln_pre.weight" in source,
        projection_size=source.shape("proj", 2)[1] if "proj" in source else None,
        position_resize="timm",
        layer_scale=setting(tower, "ls_init_value", float, 1.0) if SCALE in source else None,
        gelu=_gelu(source, model, hints),
        norm_eps=1e-5,
    )


SCALE = "transformer.resblocks.0.ls_1.gamma"


def _heads(source: TensorSource, dim: int, tower: dict[str, Any], hints: Mapping[str, Any]) -> int:
    if "num_heads" in hints:
        heads: int = hints["num_heads"]
        return heads
    if tower:
        return dim // (setting(tower, "head_width", int, 64) or 64)
    if dim not in _HEADS:
        raise CheckpointError(
            f"{source.origin} does not state how many attention heads it has, and no published CLIP is {dim} wide; "
            "give num_heads."
        )
    return _HEADS[dim]


def _gelu(source: TensorSource, model: dict[str, Any], hints: Mapping[str, Any]) -> Gelu:
    if "gelu" in hints:
        gelu: Gelu = hints["gelu"]
        return gelu
    if not model:
        raise CheckpointError(
            f"{source.origin} does not state its gelu, and image towers of CLIP differ: OpenAI's have quick, "
            "OpenCLIP's erf; give gelu."
        )
    return "quick" if setting(model, "quick_gelu", bool, False) else "erf"


def _pixels(settings: dict[str, Any], config: ViTConfig) -> Preprocessing:
    """Return CLIP's preprocessing with the numbers that a config gives."""
    usual = preset("clip", image_size=config.image_size, channels=config.channels)
    return Preprocessing(
        image_size=config.image_size,
        geometry="square" if settings.get("resize_mode") == "squash" else "crop",
        interpolation=setting(settings, "interpolation", str, usual.interpolation),  # type: ignore[arg-type]
        antialias=True,
        mean=numbers(settings, "mean", usual.mean),
        std=numbers(settings, "std", usual.std),
    )


def layout(config: ViTConfig) -> Layout:
    """List every tensor; the patch kernel has no bias."""
    table = [
        Entry("embedding.projection.weight", ("conv1.weight",), patches_oihw(config.patch_size)),
        Entry("embedding.projection.bias", ()),
        Entry("embedding.class_token", ("class_embedding",), _FLAT_TOKEN),
        Entry("embedding.positions.table", ("positional_embedding",), COPY),
        *named("embedding.norm", "ln_pre"),
        *named("encoder.norm", "ln_post"),
        Entry("head.projection.weight", ("proj",), TRANSPOSED),
    ]
    for layer in range(config.depth):
        ours, theirs = f"encoder.blocks.{layer}", f"transformer.resblocks.{layer}"
        for part in ("weight", "bias"):
            table.append(Entry(f"{ours}.attention.qkv.{part}", (f"{theirs}.attn.in_proj_{part}",)))
        for name, word in _BLOCK.items():
            table += named(f"{ours}.{name}", f"{theirs}.{word}")
        table += [Entry(f"{ours}.scale{branch}", (f"{theirs}.ls_{branch}.gamma",)) for branch in (1, 2)]
    return table


_BLOCK = {
    "norm1": "ln_1",
    "attention.out": "attn.out_proj",
    "norm2": "ln_2",
    "mlp.hidden": "mlp.c_fc",
    "mlp.out": "mlp.c_proj",
}

FORMAT = Format(
    name="openclip",
    suffixes=(),
    abilities=Abilities(library="OpenCLIP"),
    recognises=recognises,
    read=read,
    write=None,
)
