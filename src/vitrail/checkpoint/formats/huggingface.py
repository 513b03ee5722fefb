"""Hugging Face's ViT: a folder with `config.json`, `model.safetensors` and `preprocessor_config.json`.

The names on disk and those that transformers 5 keeps in memory are both read; the former are written. A model with
classes is a `ViTForImageClassification`, which has no tanh layer; one without is a `ViTModel`, whose pooler is one.
"""

from pathlib import Path
from typing import Any

from vitrail.base.errors import CheckpointError
from vitrail.base.tensors import TensorSource
from vitrail.checkpoint.contents import Contents
from vitrail.checkpoint.formats.abilities import Abilities
from vitrail.checkpoint.formats.folder import numbers, setting, write_json, write_state
from vitrail.checkpoint.formats.format import Format, Weights
from vitrail.checkpoint.infer import Hints, count_blocks, tell_grid, tell_heads
from vitrail.checkpoint.layout import BATCHED, Entry, Layout, named, patches_oihw, read_layout, stacked, write_layout
from vitrail.data.preprocessing import Interpolation, Preprocessing, preset
from vitrail.model.config import ViTConfig

# Our part of a block -> theirs, on disk and in the memory of transformers 5.
_ON_DISK = {
    "norm1": "layernorm_before",
    "qkv": ("attention.attention.query", "attention.attention.key", "attention.attention.value"),
    "attention.out": "attention.output.dense",
    "norm2": "layernorm_after",
    "mlp.hidden": "intermediate.dense",
    "mlp.out": "output.dense",
}
_IN_MEMORY = {
    "norm1": "layernorm_before",
    "qkv": ("attention.q_proj", "attention.k_proj", "attention.v_proj"),
    "attention.out": "attention.o_proj",
    "norm2": "layernorm_after",
    "mlp.hidden": "mlp.fc1",
    "mlp.out": "mlp.fc2",
}
_GELU = {"gelu": "erf", "gelu_new": "tanh", "gelu_pytorch_tanh": "tanh", "gelu_fast": "tanh"}
_RESAMPLE: dict[int, Interpolation] = {0: "nearest", 1: "lanczos", 2: "bilinear", 3: "bicubic"}


def recognises(names: set[str]) -> bool:
    """Tell whether a state dict is a ViT of transformers, with or without a classifier around it."""
    return any(name.removeprefix("vit.") == "embeddings.patch_embeddings.projection.weight" for name in names)


def read(weights: Weights) -> Contents:
    """Read a state dict, with the two JSON files beside it where there are any."""
    source, settings = weights.source, weights.settings
    _check_settings(settings, source.origin)
    prefix = "vit." if any(name.startswith("vit.") for name in source) else ""
    in_memory = any(name.startswith(f"{prefix}layers.") for name in source)
    config, notes = _infer(source, prefix, weights.hints, settings, in_memory=in_memory)
    table = layout(config, prefix=prefix, in_memory=in_memory)
    tensors = read_layout(table, source, config, "the Hugging Face ViT that it tells of")
    return Contents(
        format="huggingface",
        config=config,
        tensors=tensors,
        labels=_labels(settings, config.num_classes),
        preprocessing=_preprocessing(weights.pixels, config),
        notes=notes,
    )


def write(contents: Contents, path: Path) -> Contents:
    """Write a folder that `transformers` loads."""
    config = contents.config
    assert isinstance(config, ViTConfig)  # noqa: S101 - the format holds no others
    base_model = config.num_classes == 0
    table = layout(config, prefix="" if base_model else "vit.", in_memory=False)
    pixels = contents.preprocessing or preset("huggingface", image_size=config.image_size, channels=config.channels)
    write_state(write_layout(table, contents.tensors), path / "model.safetensors")
    write_json(path / "config.json", _settings(contents, config))
    write_json(path / "preprocessor_config.json", _pixels(pixels))
    notes = []
    if base_model and config.representation_size is None:
        notes.append("ViTModel always has a pooler, which this model has not: load it with add_pooling_layer=False.")
    if pixels.geometry == "crop":
        notes.append("ViTImageProcessor does not crop: preprocessor_config.json resizes the whole image instead.")
    return contents.noting(*notes)


def layout(config: ViTConfig, *, prefix: str, in_memory: bool) -> Layout:
    """List every tensor."""
    names = _IN_MEMORY if in_memory else _ON_DISK
    embeddings = f"{prefix}embeddings"
    table = [
        Entry(
            "embedding.projection.weight",
            (f"{embeddings}.patch_embeddings.projection.weight",),
            patches_oihw(config.patch_size),
        ),
        Entry("embedding.projection.bias", (f"{embeddings}.patch_embeddings.projection.bias",)),
        Entry("embedding.class_token", (f"{embeddings}.cls_token",), BATCHED),
        Entry("embedding.positions.table", (f"{embeddings}.position_embeddings",), BATCHED),
        *named("encoder.norm", f"{prefix}layernorm"),
        *named("head.representation", f"{prefix}pooler.dense"),
        *named("head.linear", "classifier"),
    ]
    for layer in range(config.depth):
        ours, theirs = f"encoder.blocks.{layer}", _block(prefix, layer, in_memory=in_memory)
        for part in ("weight", "bias"):
            parts = tuple(f"{theirs}.{name}.{part}" for name in names["qkv"])
            table.append(Entry(f"{ours}.attention.qkv.{part}", parts, stacked(3)))
        for our_name, their_name in names.items():
            table += named(f"{ours}.{our_name}", f"{theirs}.{their_name}") if isinstance(their_name, str) else []
    return table


def _block(prefix: str, layer: int, *, in_memory: bool) -> str:
    return f"{prefix}layers.{layer}" if in_memory else f"{prefix}encoder.layer.{layer}"


def _check_settings(settings: dict[str, Any], origin: str) -> None:
    """Refuse models that are not a plain ViT, by name."""
    if not settings:
        return
    kind = settings.get("model_type")
    if kind != "vit":
        raise CheckpointError(f"{origin} is a Hugging Face model of the type {kind!r}; only 'vit' is read.")
    if settings.get("qkv_bias", True) is not True:
        raise CheckpointError(f"{origin} has no bias in q, k and v (qkv_bias), which the paper's model has.")
    if str(settings.get("hidden_act", "gelu")) not in _GELU:
        raise CheckpointError(
            f"{origin} has the activation {settings['hidden_act']!r}; only {', '.join(_GELU)} are GELU."
        )


def _infer(
    source: TensorSource, prefix: str, hints: Hints, settings: dict[str, Any], *, in_memory: bool
) -> tuple[ViTConfig, tuple[str, ...]]:
    """Tell sizes from the tensors, what they do not show from `config.json`, and what was assumed."""
    dim, channels, height, width = source.shape(f"{prefix}embeddings.patch_embeddings.projection.weight", 4)
    count = source.shape(f"{prefix}embeddings.position_embeddings", 3)[1]
    known: dict[str, Any] = {}
    if "num_attention_heads" in settings:
        known["num_heads"] = setting(settings, "num_attention_heads", int, 0)
    size = settings.get("image_size")
    sides = size if isinstance(size, list) else [size, size]
    if len(sides) == 2 and all(type(side) is int and side > 0 for side in sides):
        known["image_size"] = tuple(sides)
    image_size = tell_grid(
        count, (height, width), extras=(1,), hints=dict(hints) | known, origin=source.origin
    ).image_size
    depth = count_blocks(source, rf"{prefix}(?:layers|encoder\.layer)\.(\d+)\.")
    mlp = (_IN_MEMORY if in_memory else _ON_DISK)["mlp.hidden"]
    mlp_dim = source.shape(f"{_block(prefix, 0, in_memory=in_memory)}.{mlp}.weight", 2)[0]
    heads, notes = tell_heads(dim, depth, mlp_dim, dict(hints) | known, source.origin)
    pooler = f"{prefix}pooler.dense.weight"
    config = ViTConfig(
        dim=dim,
        depth=depth,
        num_heads=heads,
        mlp_dim=mlp_dim,
        patch_size=(height, width),
        image_size=image_size,
        channels=channels,
        num_classes=source.shape("classifier.weight", 2)[0] if "classifier.weight" in source else 0,
        representation_size=source.shape(pooler, 2)[0] if pooler in source else None,
        position_resize="huggingface",
        gelu=_GELU[str(settings.get("hidden_act", "gelu"))],  # type: ignore[arg-type]  # a table of Gelu
        norm_eps=setting(settings, "layer_norm_eps", float, 1e-12),
        dropout=setting(settings, "hidden_dropout_prob", float, 0.0),
        attention_dropout=setting(settings, "attention_probs_dropout_prob", float, 0.0),
    )
    return config, notes


def _settings(contents: Contents, config: ViTConfig) -> dict[str, Any]:
    """Write `config.json`."""
    labels = contents.labels or tuple(f"LABEL_{number}" for number in range(config.num_classes))
    dtype = str(contents.tensors.specs["embedding.projection.weight"].dtype).removeprefix("torch.")
    settings: dict[str, Any] = {
        "architectures": ["ViTForImageClassification" if config.num_classes else "ViTModel"],
        "model_type": "vit",
        "dtype": dtype,
        "hidden_size": config.dim,
        "num_hidden_layers": config.depth,
        "num_attention_heads": config.num_heads,
        "intermediate_size": config.mlp_dim,
        "hidden_act": {"erf": "gelu", "tanh": "gelu_pytorch_tanh"}[config.gelu],
        "hidden_dropout_prob": config.dropout,
        "attention_probs_dropout_prob": config.attention_dropout,
        "layer_norm_eps": config.norm_eps,
        "image_size": _side(config.image_size),
        "patch_size": _side(config.patch_size),
        "num_channels": config.channels,
        "qkv_bias": True,
        "encoder_stride": config.patch_size[0],
        "pooler_act": "tanh",
        "pooler_output_size": config.representation_size or config.dim,
    }
    if config.num_classes:
        settings["id2label"] = {str(number): label for number, label in enumerate(labels)}
        settings["label2id"] = {label: number for number, label in enumerate(labels)}
    return settings


def _side(size: tuple[int, int]) -> int | list[int]:
    return size[0] if size[0] == size[1] else list(size)


def _pixels(pixels: Preprocessing) -> dict[str, Any]:
    """Write `preprocessor_config.json`; Pillow, which it runs on, always averages when it shrinks."""
    return {
        "image_processor_type": "ViTImageProcessor",
        "do_resize": True,
        "size": {"height": pixels.image_size[0], "width": pixels.image_size[1]},
        "resample": next(number for number, name in _RESAMPLE.items() if name == pixels.interpolation),
        "do_rescale": True,
        "rescale_factor": 1 / 255,
        "do_normalize": True,
        "image_mean": list(pixels.mean),
        "image_std": list(pixels.std),
    }


def _preprocessing(given: dict[str, Any], config: ViTConfig) -> Preprocessing:
    """Take over what `preprocessor_config.json` says, and the usual for what it does not."""
    usual = preset("huggingface", image_size=config.image_size, channels=config.channels)
    mean, std = numbers(given, "image_mean", usual.mean), numbers(given, "image_std", usual.std)
    if not setting(given, "do_normalize", bool, True):
        mean, std = (0.0,) * len(mean), (1.0,) * len(std)
    return Preprocessing(
        image_size=config.image_size,
        interpolation=_RESAMPLE.get(setting(given, "resample", int, 2), "bilinear"),
        antialias=True,
        mean=mean,
        std=std,
    )


def _labels(settings: dict[str, Any], num_classes: int) -> tuple[str, ...] | None:
    """Return the class names, unless they are the numbers that transformers makes up."""
    names = settings.get("id2label")
    if not isinstance(names, dict) or num_classes == 0 or len(names) != num_classes:
        return None
    labels = tuple(str(names.get(str(number), f"LABEL_{number}")) for number in range(num_classes))
    return None if labels == tuple(f"LABEL_{number}" for number in range(num_classes)) else labels


FORMAT = Format(
    name="huggingface",
    suffixes=("",),
    abilities=Abilities(library="Hugging Face's ViTForImageClassification"),
    headless=Abilities(library="Hugging Face's ViTModel", representation=True),
    recognises=recognises,
    read=read,
    write=write,
)
