"""timm's Vision Transformers and hybrids: a state dict, or a folder with `config.json` beside it."""

import re
from pathlib import Path

from vitrail.base.errors import CheckpointError
from vitrail.base.tensors import TensorSource
from vitrail.checkpoint.contents import Contents
from vitrail.checkpoint.formats.abilities import Abilities
from vitrail.checkpoint.formats.fold import fold_patch_bias, fold_prefix
from vitrail.checkpoint.formats.folder import setting, write_json, write_state
from vitrail.checkpoint.formats.format import Format, Weights
from vitrail.checkpoint.formats.timm_facts import find_facts
from vitrail.checkpoint.formats.timm_infer import BACKBONE_NUMERICS, dialect_of, infer
from vitrail.checkpoint.formats.timm_layout import Dialect, layout
from vitrail.checkpoint.formats.timm_settings import (
    CLIP_EPS,
    how_to_build,
    read_labels,
    read_preprocessing,
    settings_of,
)
from vitrail.checkpoint.layout import read_layout, write_layout
from vitrail.model.config import ViTConfig

# Parts of timm's other models, and what to call them when they are refused.
FOREIGN = {
    r"blocks\.0\.attn\.(q|k)_norm\.": "normalised queries and keys",
    r"blocks\.0\.(attn|mlp)\.(norm|inner_attn_ln|ffn_ln)\.": "a LayerNorm inside its branches (sub-LN)",
    r"blocks\.0\.attn\.lambda": "differential attention",
    r"blocks\.0\.attn\.gat(e|ing)": "gated attention",
    r"blocks\.0\.attn\.proj_[lw]\.": "heads that are mixed (CaiT)",
    r".*rel_pos|.*relative_position": "relative positions of another kind (BEiT, SAM)",
    r"rope\.freqs": "rotary positions that are learned",
    r"blocks\.0\.(attns|ffns)\.": "branches side by side",
    r"blocks\.0\.(in_proj|in_norm|attn_out_proj)": "attention and MLP side by side",
    r"patch_embed\.norm\.": "a norm of the patches",
    r"patch_embed\.backbone\.(conv1|bn1|layer\d|stages_|stem_)": "a ResNet of another kind",
    r"patch_embed\.(conv|proj\.\d)": "a convolutional stem",
    r"attn_pool\.(probe|qkv|.*_norm)": "attention pooling of another kind",
    r"blocks\.\d+\.proj\.|head\.projection\.": "stages that pool their tokens (Hiera)",
}
# What training leaves beside the encoder, and what to call it when it is left aside.
ASIDE = {
    r"decoder_|decoder\.": "a decoder",
    r"mask_token|masked_embed": "a mask token",
    r"local_cls_norm\.": "a norm of small crops",
    r"head\.(\d|mlp|last_layer)": "a projection head",
}


def recognises(names: set[str]) -> bool:
    """Return whether a state dict is a Vision Transformer of timm."""
    return "patch_embed.proj.weight" in names and any(name.startswith("blocks.0.") for name in names)


def read(weights: Weights) -> Contents:
    """Read a state dict, with the `config.json` beside it if there is one."""
    source, notes = _without_training(weights.source)
    _refuse_foreign(source)
    settings = weights.settings
    arguments = setting(settings, "model_args", dict, {})
    facts = find_facts(source, settings, arguments, weights.hints)
    if facts.differs:
        raise CheckpointError(f"{source.origin} is a timm model with {facts.differs}, which is not read.")
    rotary = facts.tell_rotary()
    config, grid = infer(source, facts, settings, rotary)
    if grid.extra > bool(config.class_token):
        further = {name: source.shape(name, 3)[1] for name in ("dist_token", "reg_token") if name in source}
        source = fold_prefix(source, "pos_embed", further, first=int(bool(config.class_token)))
    dialect = dialect_of(source, config, facts, rotary, entries=min(grid.extra, int(bool(config.class_token))))
    tensors = read_layout(layout(config, dialect), source, config, "the timm model that it describes")
    pixels, doubt = read_preprocessing(settings, facts, config)
    return Contents(
        format="timm",
        config=config,
        tensors=tensors,
        labels=read_labels(settings.get("label_names"), config.num_classes),
        preprocessing=pixels,
        doubt=doubt,
        notes=notes,
    )


def write(contents: Contents, path: Path) -> Contents:
    """Write a state dict, or into a folder what `timm.create_model("local-dir:...", pretrained=True)` reads."""
    config = contents.config
    assert isinstance(config, ViTConfig)  # noqa: S101 - the format holds no others
    absent = {"patch_embed.proj.bias"} if config.norm_embedded else set()
    contents = fold_patch_bias(contents) if config.norm_embedded else contents
    dialect = Dialect(entries=config.num_prefix, absent=absent)
    state = write_layout(layout(config, dialect), contents.tensors)
    if path.suffix == ".safetensors":
        write_state(state, path, contents)
        return contents.noting(how_to_build(config))
    lacking = _no_folder(config)
    if lacking:
        raise CheckpointError(
            "timm's folders name a model of its own list, which has no hybrids of other sizes, no distilled models, no "
            f"SwiGLU and no other LayerNorm epsilon than 1e-6 and 1e-5, but this model has {lacking}; "
            "write a .safetensors file instead."
        )
    write_state(state, path / "model.safetensors", contents)
    write_json(path / "config.json", settings_of(contents, config))
    return contents


def _no_folder(config: ViTConfig) -> str | None:
    """Return a note about what a `config.json` of timm cannot name."""
    reasons = {
        "a backbone": config.backbone is not None,
        f"norm_eps={config.norm_eps}": config.norm_eps not in (1e-6, CLIP_EPS),
        "a distillation token": config.distillation_token,
        "SwiGLU": config.mlp == "swiglu",
    }
    return next((reason for reason, present in reasons.items() if present), None)


def _without_training(source: TensorSource) -> tuple[TensorSource, tuple[str, ...]]:
    """Leave aside what training needs beside the encoder, with a note."""
    aside = {name: kind for name in source for pattern, kind in ASIDE.items() if re.match(pattern, name)}
    if not aside:
        return source, ()
    kinds = ", ".join(dict.fromkeys(aside.values()))
    note = f"{kinds} for training was left aside."
    return source.renamed({name: name for name in source if name not in aside}), (note,)


def _refuse_foreign(source: TensorSource) -> None:
    kinds = {kind for name in source for pattern, kind in FOREIGN.items() if re.match(pattern, name)}
    if "blocks.0.norm1.weight" in source and "blocks.0.norm1.bias" not in source:
        kinds.add("RMSNorm")
    widths = {
        source.specs[name].shape[:1]
        for name in ("attn_pool.mlp.fc1.weight", "blocks.0.mlp.fc1.weight")
        if name in source
    }
    if "attn_pool.latent" in source and len(widths) > 1:
        kinds.add("an MLP of another width in its attention pooling")
    if kinds:
        raise CheckpointError(
            f"{source.origin} is a timm model with {', '.join(sorted(kinds))}, which no model here has; only models "
            "without are read."
        )


FORMAT = Format(
    name="timm",
    suffixes=(".safetensors", ""),
    abilities=Abilities(
        library="timm",
        hybrid=True,
        pools=("class-token", "mean", "attention", "distilled"),
        idle_class_token=True,
        norm_pooled=True,
        positions=("learned-1d", "none"),
        parts=(
            *("layer_scale", "registers", "norm_embedded", "no_norm", "distillation_token", "swiglu", "projection"),
            *("trim", "pool_patches", "pool_all", "quick_gelu"),
        ),
        backbone_numerics=BACKBONE_NUMERICS,
    ),
    recognises=recognises,
    read=read,
    write=write,
)
