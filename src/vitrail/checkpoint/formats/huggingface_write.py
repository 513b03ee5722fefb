"""Writing folders for transformers: the class is chosen by what a model has."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch

from vitrail.base.tensors import Spec, TensorSource
from vitrail.checkpoint.contents import Contents
from vitrail.checkpoint.formats import huggingface
from vitrail.checkpoint.formats.abilities import Abilities
from vitrail.checkpoint.formats.fold import fold_patch_bias
from vitrail.checkpoint.formats.folder import write_json, write_state
from vitrail.checkpoint.formats.format import Format
from vitrail.checkpoint.formats.huggingface_names import Dialect, layout, their_names
from vitrail.checkpoint.formats.huggingface_pixels import write_pixels
from vitrail.checkpoint.formats.huggingface_types import TYPES, Type
from vitrail.checkpoint.layout import write_layout
from vitrail.data.preprocessing import preset
from vitrail.model.config import ViTConfig

_ACT = {"erf": "gelu", "tanh": "gelu_pytorch_tanh", "quick": "quick_gelu"}
Settings = Callable[[ViTConfig], dict[str, Any]]
"""What a class has in `config.json` beside what all have."""


def write(contents: Contents, path: Path, *, kind: Type, classes: tuple[str, str], more: Settings) -> Contents:
    """Write a folder for one of two classes: a model with a last layer, and one without."""
    config = contents.config
    assert isinstance(config, ViTConfig)  # noqa: S101 - the format holds no others
    clip = config.norm_embedded
    contents = fold_patch_bias(contents) if clip else contents
    dialect = Dialect(
        flat=kind.name in ("clip", "siglip"),
        packed=config.mlp == "swiglu" and kind.name.startswith("dinov2"),
        zero_entry=config.distillation_token,
        absent=frozenset({"patch.bias"} if clip else ()),
    )
    state = write_layout(layout(config, dialect), contents.tensors)
    headless = config.num_classes == 0
    bare = headless and config.projection_size is None
    family = kind.names if not dialect.packed else {**kind.names, "shrink": "mlp.weights_out"}
    names = their_names(state, family, "" if bare else kind.wrapper)
    state = state.renamed({names[word]: word for word in state})
    if kind.name in ("dinov2_with_registers", "dinov3_vit"):
        shape = (1, 1, config.dim) if kind.name == "dinov3_vit" else (1, config.dim)
        state = _with_mask_token(state, f"{'' if bare else kind.wrapper}embeddings.mask_token", shape)
    pixels = contents.preprocessing or preset("huggingface", image_size=config.image_size, channels=config.channels)
    write_state(state, path / "model.safetensors")
    settings = {"architectures": [classes[headless]], "model_type": kind.name} | _common(contents, config)
    write_json(path / "config.json", settings | more(config))
    write_json(path / "preprocessor_config.json", write_pixels(pixels))
    notes = []
    if kind.name == "vit" and headless and config.representation_size is None:
        notes.append("ViTModel always has a pooler, which this model has not: load it with add_pooling_layer=False.")
    return contents.noting(*notes)


def _with_mask_token(state: TensorSource, name: str, shape: tuple[int, ...]) -> TensorSource:
    """Add the token of masked patches, which the class has and nothing here uses."""
    dtype = next(iter(state.specs.values())).dtype
    specs = {**state.specs, name: Spec(shape, dtype)}
    return TensorSource(
        origin=state.origin,
        specs=specs,
        fetch=lambda wanted: torch.zeros(shape, dtype=dtype) if wanted == name else state[wanted],
    )


def _common(contents: Contents, config: ViTConfig) -> dict[str, Any]:
    """Write what every class has."""
    labels = contents.labels or tuple(f"LABEL_{number}" for number in range(config.num_classes))
    dtype = str(contents.tensors.specs["embedding.projection.weight"].dtype).removeprefix("torch.")
    settings: dict[str, Any] = {
        "dtype": dtype,
        "hidden_size": config.dim,
        "num_hidden_layers": config.depth,
        "num_attention_heads": config.num_heads,
        "intermediate_size": config.mlp_dim,
        "hidden_act": _ACT[config.gelu],
        "hidden_dropout_prob": config.dropout,
        "attention_probs_dropout_prob": config.attention_dropout,
        "layer_norm_eps": config.norm_eps,
        "image_size": _side(config.image_size),
        "patch_size": _side(config.patch_size),
        "num_channels": config.channels,
    }
    if config.num_classes:
        settings["id2label"] = {str(number): label for number, label in enumerate(labels)}
        settings["label2id"] = {label: number for number, label in enumerate(labels)}
    return settings


def _side(size: tuple[int, int]) -> int | list[int]:
    return size[0] if size[0] == size[1] else list(size)


def _vit(config: ViTConfig) -> dict[str, Any]:
    return {
        "qkv_bias": True,
        "encoder_stride": config.patch_size[0],
        "pooler_act": "tanh",
        "pooler_output_size": config.representation_size or config.dim,
    }


def _dinov2(config: ViTConfig) -> dict[str, Any]:
    gated = config.mlp == "swiglu"  # whose hidden width is two thirds of the ratio's, rounded up to eights
    ratio = config.mlp_dim / config.dim * (1.5 if gated else 1.0)
    return {
        "qkv_bias": True,
        "mlp_ratio": int(ratio) if ratio == int(ratio) else ratio,
        "use_swiglu_ffn": gated,
        "use_mask_token": False,
        "layerscale_value": config.layer_scale,
        "num_register_tokens": config.registers,
    }


def _dinov3(config: ViTConfig) -> dict[str, Any]:
    assert config.rotary is not None  # noqa: S101 - the format holds no others
    gated = config.mlp == "swiglu"
    return {
        "rope_theta": config.rotary.base,
        "key_bias": True,
        "use_gated_mlp": gated,
        "layerscale_value": config.layer_scale,
        "num_register_tokens": config.registers,
        "attention_dropout": config.attention_dropout,
    } | ({"hidden_act": "silu"} if gated else {})


def _tower(name: str, config: ViTConfig) -> dict[str, Any]:
    settings: dict[str, Any] = {"model_type": f"{name}_vision_model", "attention_dropout": config.attention_dropout}
    if config.projection_size:
        return settings | {"projection_dim": config.projection_size}
    return settings | ({"architectures": ["CLIPVisionModel"]} if name == "clip" else {})


def _format(
    kind: str, classes: tuple[str, str], more: Settings, abilities: Abilities, headless: Abilities | None = None
) -> Format:
    return Format(
        name="huggingface",
        suffixes=("",),
        abilities=abilities,
        headless=headless,
        recognises=huggingface.recognises if kind == "vit" else lambda _: False,
        read=huggingface.read if kind == "vit" else None,
        write=partial(write, kind=TYPES[kind], classes=classes, more=more),
    )


_SCALED = ("layer_scale", "swiglu", "quick_gelu", "trim")
FORMATS = (
    _format(
        "vit",
        ("ViTForImageClassification", "ViTModel"),
        _vit,
        Abilities(library="Hugging Face's ViTForImageClassification", parts=("quick_gelu", "trim")),
        Abilities(library="Hugging Face's ViTModel", representation=True, parts=("quick_gelu", "trim")),
    ),
    _format(
        "deit",
        ("DeiTForImageClassificationWithTeacher", "DeiTModel"),
        _vit,
        Abilities(
            library="Hugging Face's DeiT", pools=("distilled",), parts=("distillation_token", "quick_gelu", "trim")
        ),
        Abilities(
            library="Hugging Face's DeiTModel",
            representation=True,
            parts=("distillation_token", "quick_gelu", "trim"),
        ),
    ),
    _format(
        "ijepa",
        ("IJepaForImageClassification", "IJepaModel"),
        _vit,
        Abilities(library="Hugging Face's I-JEPA", pools=("mean",), parts=("quick_gelu", "trim")),
    ),
    _format(
        "dinov2",
        ("Dinov2ForImageClassification", "Dinov2Model"),
        _dinov2,
        Abilities(library="Hugging Face's Dinov2", pools=("class-and-mean",), rectangles=False, parts=_SCALED),
        Abilities(library="Hugging Face's Dinov2Model", rectangles=False, parts=_SCALED),
    ),
    _format(
        "dinov2_with_registers",
        ("Dinov2WithRegistersForImageClassification", "Dinov2WithRegistersModel"),
        _dinov2,
        Abilities(
            library="Hugging Face's Dinov2WithRegisters",
            pools=("class-and-mean",),
            rectangles=False,
            parts=(*_SCALED, "registers"),
        ),
        Abilities(library="Hugging Face's Dinov2WithRegisters", rectangles=False, parts=(*_SCALED, "registers")),
    ),
    _format(
        "dinov3_vit",
        ("", "DINOv3ViTModel"),
        _dinov3,
        Abilities(library="Hugging Face's DINOv3ViTModel without a last layer", pools=(), parts=_SCALED),
        Abilities(
            library="Hugging Face's DINOv3ViTModel",
            positions=("none",),
            parts=(*_SCALED, "registers", "rotary"),
        ),
    ),
    _format(
        "clip",
        ("", "CLIPVisionModelWithProjection"),
        partial(_tower, "clip"),
        Abilities(library="Hugging Face's CLIP without a last layer", pools=(), parts=("norm_embedded",)),
        Abilities(
            library="Hugging Face's CLIPVisionModel",
            rectangles=False,
            parts=("norm_embedded", "projection", "quick_gelu", "trim"),
        ),
    ),
    _format(
        "siglip",
        ("", "SiglipVisionModel"),
        partial(_tower, "siglip"),
        Abilities(library="Hugging Face's SigLIP without a last layer", pools=(), parts=()),
        Abilities(
            library="Hugging Face's SiglipVisionModel",
            pools=("attention",),
            rectangles=False,
            parts=("quick_gelu", "trim"),
        ),
    ),
)
