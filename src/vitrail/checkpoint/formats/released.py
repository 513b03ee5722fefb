"""The names that programs of training give to a Vision Transformer, as the names of the library that it is written in.

Three things are undone: the place of the model inside a larger one (`module.`, `backbone.`, `model._orig_mod.`,
whatever stands before the patch kernel), marks of wrappers inside names, and other words for timm's parts in the
releases of DINOv2, DINOv3 and mmpretrain.
"""

import math
import re
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from vitrail.base.errors import CheckpointError
from vitrail.base.tensors import Spec, TensorSource
from vitrail.checkpoint.formats.huggingface_names import WRAPPERS
from vitrail.checkpoint.formats.timm_facts import HEADS_DIFFER, NORMS_DIFFER
from vitrail.checkpoint.wrappers import PATCH_KERNELS

_MARKS = re.compile(r"(?<![^.])(_orig_mod|_fsdp_wrapped_module|_checkpoint_wrapped_module)\.")
"""What torch.compile, FSDP and activation checkpointing put into names."""
_AVERAGES = ("teacher", "ema", "model_ema", "target_encoder")
"""Parts of a larger model that are taken before others."""
_MOMENTUM = "momentum_encoder"
"""The average of MoCo v3, which its authors do not evaluate: its other encoder is taken."""
# Another word -> timm's.
_DINO = {
    r"register_tokens|storage_tokens": "reg_token",
    r"blocks\.\d+\.(\d+)\.": r"blocks.\1.",  # chunks of blocks, which keep their numbers
}
_DINOV2 = {r"(blocks\.\d+\.mlp)\.w12\.": r"\1.fc1.", r"(blocks\.\d+\.mlp)\.w3\.": r"\1.fc2."}
_DINOV3 = {
    r"(blocks\.\d+\.mlp)\.w1\.": r"\1.fc1_g.",
    r"(blocks\.\d+\.mlp)\.w2\.": r"\1.fc1_x.",
    r"(blocks\.\d+\.mlp)\.w3\.": r"\1.fc2.",
    r"(blocks\.\d+)\.ls([12])\.gamma": r"\1.gamma_\2",
}
_MM = {
    r"patch_embed\.projection\.": "patch_embed.proj.",
    r"layers\.(\d+)\.ln([12])\.": r"blocks.\1.norm\2.",
    r"layers\.(\d+)\.ffn\.layers\.0\.0\.": r"blocks.\1.mlp.fc1.",
    r"layers\.(\d+)\.ffn\.layers\.1\.": r"blocks.\1.mlp.fc2.",
    r"layers\.(\d+)\.ffn\.w12\.": r"blocks.\1.mlp.fc1.",
    r"layers\.(\d+)\.ffn\.w3\.": r"blocks.\1.mlp.fc2.",
    r"layers\.(\d+)\.attn\.gamma1\.weight": r"blocks.\1.ls1.gamma",
    r"layers\.(\d+)\.ffn\.gamma2\.weight": r"blocks.\1.ls2.gamma",
    r"layers\.(\d+)\.attn\.": r"blocks.\1.attn.",
    r"ln1\.": "norm.",
    r"ln2\.": "fc_norm.",
    r"pre_norm\.": "norm_pre.",
}


@dataclass(frozen=True, kw_only=True)
class Released:
    """Weights by the names of a library."""

    source: TensorSource
    notes: tuple[str, ...] = ()
    hints: dict[str, Any] = field(default_factory=dict)
    """What the names show about the model."""


def with_plain_names(source: TensorSource) -> Released:
    """Take the model out of what it is wrapped in, and rename its parts."""
    names = {_MARKS.sub("", name): name for name in source}
    if len(names) < len(source):
        raise CheckpointError(f"{source.origin} holds some tensors twice, with and without the names of a wrapper.")
    source = source.renamed(names) if any(new != old for new, old in names.items()) else source
    prefix, others = _prefix(source)
    notes: list[str] = []
    hints: dict[str, Any] = {}
    if prefix:
        source, notes = _unwrapped(source, prefix, others)
        moco = prefix.endswith("base_encoder.") or any(_MOMENTUM in other for other in others)
        if moco and any(source.specs[name].shape[:1] == (384,) for name in PATCH_KERNELS[:2] if name in source):
            hints["num_heads"] = 12
            notes.append("the small model of MoCo v3 has 12 heads.")
    if "patch_embed.projection.weight" in source:
        hints |= _open_in_mm(source)
    if "rope_embed.periods" in source:  # DINOv3: its features of an image are the class token's, where timm has a mean
        hints |= {"pool": "class-token", "image_size": (224, 224)}
    elif "register_tokens" in source:  # DINOv2, where they come after positions are added
        hints["class_entry_only"] = True
    elif len(source.specs.get("mask_token", Spec((), None)).shape) == 2:
        hints["position_resize"] = "dino"  # DINOv2, whose models with registers resize as timm does
    return Released(source=_renamed(source), notes=tuple(notes), hints=hints)


def _prefix(source: TensorSource) -> tuple[str, list[str]]:
    """Return what stands before the names of the model, and before those of others of its kind."""
    kernels = [(name, kernel) for name in source for kernel in PATCH_KERNELS[:3] if name.endswith(f".{kernel}")]
    prefixes = list(dict.fromkeys(name.removesuffix(kernel) for name, kernel in kernels))
    prefixes = prefixes or list(dict.fromkeys(filter(None, map(_before_huggingface, source))))
    if not prefixes or any(name in PATCH_KERNELS for name in source):
        return "", []
    candidates = [prefix for prefix in prefixes if _MOMENTUM not in prefix.split(".")] or prefixes
    words = [[word in _AVERAGES for word in prefix.split(".")] for prefix in candidates]
    best = max(range(len(candidates)), key=lambda index: (any(words[index]), -index))
    if len(candidates) > 1 and not any(words[best]):
        raise CheckpointError(
            f"{source.origin} holds {len(prefixes)} Vision Transformers ({', '.join(prefixes[:4])}); save one of them "
            "alone."
        )
    return candidates[best], [prefix for prefix in prefixes if prefix != candidates[best]]


def _before_huggingface(name: str) -> str:
    """Return what stands before the names of transformers, whose classes may have a name of their own there."""
    kernel = re.fullmatch(rf"((?:.+?\.)??)(?:{WRAPPERS})?embeddings\.patch_embedding(s\.projection|s)?\.weight", name)
    return kernel[1] if kernel else ""


def _unwrapped(source: TensorSource, prefix: str, others: list[str]) -> tuple[TensorSource, list[str]]:
    inside = {name.removeprefix(prefix): name for name in source if name.startswith(prefix)}
    aside = [name for name in source if not name.startswith(prefix)]
    if "patch_embed.projection.weight" in inside:  # mmpretrain has the head beside the backbone
        heads = {name: _mm_head(name) for name in aside}
        inside |= {new: old for old, new in heads.items() if new != old}
        aside = [name for name in aside if heads[name] == name]
    notes = []
    if others:
        notes.append(f"the model {prefix.rstrip('.')} was taken, not {', '.join(name.rstrip('.') for name in others)}.")
    aside = [name for name in aside if not name.startswith(tuple(others))]
    if aside:
        shown = ", ".join(aside[:3]) + (f" and {len(aside) - 3} more" if len(aside) > 3 else "")
        notes.append(f"what lies outside {prefix.rstrip('.')} was left aside: {shown}.")
    return source.renamed(inside), notes


def _mm_head(name: str) -> str:
    """Return timm's name for a tensor of mmpretrain's head: a layer before the last, and one or two last ones."""
    name = re.sub(r"^head\.layers\.pre_logits\.", "pre_logits.fc.", name)
    return re.sub(r"^head\.(layers\.head|fc)(_dist)?\.", r"head\2.", name)


def _open_in_mm(source: TensorSource) -> dict[str, Any]:
    """Return what the names and sizes of mmpretrain's models leave open, and why."""
    dim, *_ = source.shape("patch_embed.projection.weight", 4)
    positions = source.specs.get("pos_embed", Spec((), None)).shape
    square = len(positions) == 3 and math.isqrt(positions[1]) ** 2 == positions[1]
    hints: dict[str, Any] = {"position_resize": "huggingface"}
    if dim == 384:
        hints[HEADS_DIFFER] = "of mmpretrain's models of its sizes deit-small has 6 and mocov3-small 12"
    if "cls_token" in source and "layers.0.attn.gamma1.weight" in source and square:
        hints[NORMS_DIFFER] = (
            "a DeiT3 of mmpretrain, whose program applies the first norm of a block before both of its branches since "
            "1.0, which no model here does; if it holds DeiT III as published, give its name in timm as architecture "
            "(deit3_small_patch16_224)."
        )
    return hints


def _renamed(source: TensorSource) -> TensorSource:
    """Give the parts of other programs timm's names."""
    tables: dict[str, str] = {}
    if "patch_embed.projection.weight" in source:
        tables = _MM
    elif "patch_embed.proj.weight" in source:
        third = any(name.startswith("rope_embed.") or name.endswith("bias_mask") for name in source)
        tables = _DINO | (_DINOV3 if third or "blocks.0.mlp.w1.weight" in source else _DINOV2)
        source = _without_masked_bias(source) if third else source
    names: dict[str, str] = {}
    for name in source:
        new = name
        for pattern, word in tables.items():
            new = re.sub(f"^{pattern}", word, new)
        if new in names:
            raise CheckpointError(
                f"{source.origin} mixes two layouts: {names[new]} and {name} are the same part of a model; get a file "
                "of one model."
            )
        names[new] = name
    return source.renamed(names)


def _without_masked_bias(source: TensorSource) -> TensorSource:
    """Take the mask of DINOv3's biases into them, as timm does: queries and values have one, keys have none.

    With rotary positions a bias of the keys would matter.
    """
    plain = [name for name in source if not name.endswith("bias_mask") and not name.startswith("rope_embed.")]
    specs = {name: source.specs[name] for name in plain}
    parts: dict[str, tuple[str, int]] = {}
    for name in [name for name in plain if f"{name}_mask" in source and name.endswith("attn.qkv.bias")]:
        (count,), dtype = source.shape(name, 1), specs[name].dtype
        if source.specs[f"{name}_mask"].shape != (count,) or count % 3 or source[f"{name}_mask"].chunk(3)[1].any():
            raise CheckpointError(
                f"{source.origin} has biases of keys ({name}), which no published DINOv3 has; get the file again."
            )
        del specs[name]
        for part, third in (("q_bias", 0), ("v_bias", 2)):
            new = name.replace("qkv.bias", part)
            specs[new], parts[new] = Spec((count // 3,), dtype), (name, third)

    def fetch(name: str) -> Tensor:
        if name not in parts:
            return source[name]
        bias, third = parts[name]
        return (source[bias] * source[f"{bias}_mask"].to(source[bias].dtype)).chunk(3)[third]

    return TensorSource(origin=source.origin, specs=specs, fetch=fetch, metadata=source.metadata)
