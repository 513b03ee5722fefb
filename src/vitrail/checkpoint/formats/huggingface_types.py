"""The types of models of transformers that are Vision Transformers: their names, and what settings leave open."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from vitrail.base.errors import CheckpointError
from vitrail.checkpoint.formats.folder import setting
from vitrail.model.gelu import Gelu
from vitrail.model.positions import ResizeWay

GELUS: dict[str, Gelu] = {
    "gelu": "erf",
    "gelu_new": "tanh",
    "gelu_pytorch_tanh": "tanh",
    "gelu_fast": "tanh",
    "gelu_python_tanh": "tanh",
    "gelu_accurate": "tanh",
    "gelu_python": "erf",
    "quick_gelu": "quick",
}
_OLD_BLOCK = {
    "block": "encoder.layer",
    "query": "attention.attention.query",
    "key": "attention.attention.key",
    "value": "attention.attention.value",
    "out": "attention.output.dense",
}
_VIT = _OLD_BLOCK | {
    "patch": "embeddings.patch_embeddings.projection",
    "class_token": "embeddings.cls_token",
    "distillation_token": "embeddings.distillation_token",
    "registers": "embeddings.register_tokens",
    "positions": "embeddings.position_embeddings",
    "norm": "layernorm",
    "pooler": "pooler.dense",
    "norm1": "layernorm_before",
    "norm2": "layernorm_after",
    "hidden": "intermediate.dense",
    "shrink": "output.dense",
}
_SCALES = {"scale1": "layer_scale1.lambda1", "scale2": "layer_scale2.lambda1", "norm1": "norm1", "norm2": "norm2"}
_DINOV2 = _VIT | _SCALES | {"hidden": "mlp.fc1", "shrink": "mlp.fc2", "packed": "mlp.weights_in"}
_DINOV3 = _DINOV2 | {
    "block": "layer",
    "patch": "embeddings.patch_embeddings",
    "query": "attention.q_proj",
    "key": "attention.k_proj",
    "value": "attention.v_proj",
    "out": "attention.o_proj",
    "norm": "norm",
    "hidden": "mlp.up_proj",
    "gate": "mlp.gate_proj",
    "shrink": "mlp.down_proj",
}
_CLIP = {
    "block": "encoder.layers",
    "patch": "embeddings.patch_embedding",
    "class_token": "embeddings.class_embedding",
    "positions": "embeddings.position_embedding.weight",
    "pre_norm": "pre_layrnorm",
    "norm": "post_layernorm",
    "norm1": "layer_norm1",
    "norm2": "layer_norm2",
    "query": "self_attn.q_proj",
    "key": "self_attn.k_proj",
    "value": "self_attn.v_proj",
    "out": "self_attn.out_proj",
    "hidden": "mlp.fc1",
    "shrink": "mlp.fc2",
    "pool.probe": "head.probe",
    "pool.stack": "head.attention.in_proj",
    "pool.out": "head.attention.out_proj",
    "pool.norm": "head.layernorm",
    "pool.hidden": "head.mlp.fc1",
    "pool.shrink": "head.mlp.fc2",
}


@dataclass(frozen=True, kw_only=True)
class Type:
    """What transformers calls a type of model, and its numerics where `config.json` leaves them out."""

    name: str
    names: Mapping[str, str]
    """The name on disk of each of our words."""
    wrapper: str = ""
    """What stands in front of these in a model with classes."""
    act: str = "gelu"
    norm_eps: float = 1e-12
    resize: ResizeWay = "huggingface"
    image_size: int = 224


VIT = Type(name="vit", names=_VIT, wrapper="vit.")
TYPES: dict[str, Type] = {
    "vit": VIT,
    "deit": Type(name="deit", names=_VIT, wrapper="deit."),
    "vit_mae": Type(name="vit_mae", names=_VIT, wrapper="vit."),
    "vit_msn": Type(name="vit_msn", names=_VIT, wrapper="vit.", norm_eps=1e-6),
    "ijepa": Type(name="ijepa", names=_VIT, wrapper="ijepa."),
    "dinov2": Type(name="dinov2", names=_DINOV2, wrapper="dinov2.", norm_eps=1e-6),
    "dinov2_with_registers": Type(
        name="dinov2_with_registers", names=_DINOV2, wrapper="dinov2_with_registers.", norm_eps=1e-6, resize="timm"
    ),
    "dinov3_vit": Type(name="dinov3_vit", names=_DINOV3, norm_eps=1e-5),
    "siglip": Type(name="siglip", names=_CLIP, wrapper="vision_model.", act="gelu_pytorch_tanh", norm_eps=1e-6),
    "clip": Type(name="clip", names=_CLIP, wrapper="vision_model.", act="quick_gelu", norm_eps=1e-5),
}
ALIASES = {"siglip_vision_model": "siglip", "clip_vision_model": "clip"}
# Types that look alike, and why each is another model.
OTHERS = {
    "beit": "relative positions inside attention",
    "data2vec-vision": "relative positions inside attention",
    "siglip2": "a patch layer for images of any size (NaFlex)",
    "siglip2_vision_model": "a patch layer for images of any size (NaFlex)",
    "swin": "windows",
    "swinv2": "windows",
    "vitdet": "windows",
    "sam_vision_model": "windows",
    "aimv2": "RMSNorm",
    "aimv2_vision_model": "RMSNorm",
    "yolos": "detection tokens",
    "hiera": "stages that pool their tokens",
    "mlcd_vision_model": "rotary positions of another kind",
    "mlcd": "rotary positions of another kind",
    "pixtral": "RMSNorm",
}


def type_of(settings: Mapping[str, Any], origin: str) -> Type | None:
    """Return the type that `config.json` names, None where it names none; other types are refused by name."""
    if "model_type" not in settings:
        return None
    kind = setting(dict(settings), "model_type", str, "")
    known = TYPES.get(ALIASES.get(kind, kind))
    if known is None:
        raise CheckpointError(refusal(kind, origin))
    return known


def refusal(kind: str, origin: str) -> str:
    """Write why a model of another type is not read."""
    reason = f", which has {OTHERS[kind]}" if kind in OTHERS else ""
    return f"{origin} is a Hugging Face model of the type {kind!r}{reason}; those that are read: {', '.join(TYPES)}."
