"""transformers: every class whose input is images in patches, by the library's own list of classes.

Each is built small with random weights, saved by `save_pretrained`, and loaded. What it is compared with is the first
of: logits, image embeddings, the pooler's output, the class token after the last layer or the mean of all tokens where
there is none. Models that generate text are left out.
"""

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
import transformers
from torch import Tensor, nn
from verdicts import Verdict, images_of, judge, randomised

LIBRARY = "transformers"
SMALL: dict[str, Any] = {
    "hidden_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 96,
    "mlp_ratio": 2,
    "patch_size": 8,
    "image_size": 32,
    "num_labels": 5,
    "projection_dim": 20,
    "num_patches": 16,
    "num_register_tokens": 2,
    "window_size": 2,
    "decoder_hidden_size": 32,
    "decoder_num_hidden_layers": 1,
    "decoder_num_attention_heads": 4,
    "decoder_intermediate_size": 32,
}
TEXT: dict[str, Any] = {
    "hidden_size": 48,
    "num_hidden_layers": 1,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "vocab_size": 99,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 1,
    "projection_dim": 20,
}
# Variants of a class, by settings of its config.
VARIANTS: dict[str, list[dict[str, Any]]] = {
    "ViTForImageClassification": [
        {"hidden_act": "quick_gelu"},
        {"hidden_act": "relu"},
        {"qkv_bias": False},
        {"image_size": [16, 48]},
        {"layer_norm_eps": 1e-3},
    ],
    "ViTModel": [{"pooler_act": "relu"}, {"pooler_output_size": 24}],
    "Dinov2Model": [{"use_swiglu_ffn": True}, {"image_size": 518}],
    "Dinov2WithRegistersModel": [{"use_swiglu_ffn": True}, {"num_register_tokens": 0}],
    "DINOv3ViTModel": [
        {"use_gated_mlp": True, "hidden_act": "silu"},
        {"use_gated_mlp": True},
        {"rope_theta": 50.0},
        {"key_bias": True},
        {"query_bias": False, "mlp_bias": False, "proj_bias": False},
        {"image_size": [16, 48]},
        {"num_register_tokens": 0},
    ],
    "CLIPVisionModel": [{"hidden_act": "gelu"}, {"image_size": 36}],
    "CLIPVisionModelWithProjection": [{"hidden_act": "gelu"}],
    "SiglipVisionModel": [{"vision_use_head": False}, {"image_size": 36}, {"hidden_act": "gelu"}],
    "IJepaModel": [{"image_size": [16, 48]}],
    "ViTMSNModel": [{"image_size": [16, 48]}],
}


def names() -> list[str]:
    listed = []
    for name in sorted(dir(transformers)):
        if not name[0].isupper() or name.endswith(("Config", "Tokenizer", "Processor", "Fast", "PreTrainedModel")):
            continue
        try:
            kind = getattr(transformers, name)
            if _looks_like_one(kind):
                listed.append(name)
        except Exception:  # noqa: S112 - a class of a library that is not installed
            continue
    return [one for name in listed for one in (name, *(f"{name} {number}" for number in _variants(name)))]


def _variants(name: str) -> range:
    return range(len(VARIANTS.get(name, ())))


def _looks_like_one(kind: Any) -> bool:
    """Tell a class whose main input is images and whose config has patches."""
    if not (inspect.isclass(kind) and issubclass(kind, transformers.PreTrainedModel)):
        return False
    if "ForConditionalGeneration" in kind.__name__ or "Video" in kind.__name__:
        return False
    contrastive = hasattr(kind, "get_image_features") and hasattr(kind, "get_text_features")
    if kind.main_input_name != "pixel_values" and not contrastive:
        return False
    config = kind.config_class()
    tower = getattr(config, "vision_config", config)
    return hasattr(tower, "patch_size") and hasattr(tower, "hidden_size")


def verdicts(name: str, folder: Path) -> Iterator[Verdict]:
    word, _, number = name.partition(" ")
    changes = VARIANTS[word][int(number)] if number else {}
    torch.manual_seed(0)
    try:
        model = randomised(_built(getattr(transformers, word), changes))
        model.save_pretrained(folder)
    except Exception as error:
        yield Verdict(LIBRARY, name, "folder", "unbuilt", f"{type(error).__name__}: {str(error)[:120]}")
        return
    size = changes.get("image_size", 32)
    images = images_of(*(size if isinstance(size, list) else (size, size)))
    way = f"folder, {changes}" if changes else "folder"
    yield Verdict(LIBRARY, name, way, *judge(folder, images, lambda: _output(model, images)))


def _built(kind: type[nn.Module], changes: dict[str, Any]) -> nn.Module:
    """Build a small model of a class, whatever its config is called."""
    usual = kind.config_class()
    if hasattr(usual, "vision_config"):
        own = {key: SMALL[key] for key in ("projection_dim", "num_labels") if hasattr(usual, key)}
        parts = {"vision_config": _small(usual.vision_config, SMALL)}
        if hasattr(usual, "text_config"):
            parts["text_config"] = _small(usual.text_config, TEXT)
        return kind(kind.config_class(**own, **parts))
    return kind(kind.config_class(**_small(usual, SMALL) | changes))


def _small(config: Any, sizes: dict[str, Any]) -> dict[str, Any]:
    return {key: _like(getattr(config, key), value) for key, value in sizes.items() if hasattr(config, key)}


def _like(usual: Any, value: Any) -> Any:
    """Give a number the type that the config has: whole, broken, or one for each side."""
    if isinstance(usual, list | tuple) and isinstance(value, int):
        return [value] * len(usual)
    return float(value) if isinstance(usual, float) else value


@torch.no_grad()
def _output(model: nn.Module, images: Tensor) -> Tensor | None:
    if hasattr(model, "get_image_features"):
        features = model.get_image_features(images)
        return features if isinstance(features, Tensor) else features.pooler_output
    if "MAE" in type(model).__name__:
        return _unmasked(model, images)
    try:
        answer = model(images)
    except Exception:
        return None
    if hasattr(answer, "feature_maps"):  # a backbone: its last norm is applied to what the last layer gives
        norm = getattr(model, "layernorm", None) or getattr(model, "norm", None)
        return None if norm is None else norm(model(images, output_hidden_states=True).hidden_states[-1])[:, 0]
    for field in ("logits", "image_embeds", "pooler_output"):
        if isinstance(value := getattr(answer, field, None), Tensor):
            return value
    tokens = getattr(answer, "last_hidden_state", None)
    if not isinstance(tokens, Tensor) or tokens.ndim != 3:
        return None
    side = model.config.patch_size
    cells = (images.shape[-2] // side) * (images.shape[-1] // side)
    return tokens[:, 0] if tokens.shape[1] > cells else tokens.mean(dim=1)


def _unmasked(model: nn.Module, images: Tensor) -> Tensor:
    """Return the class token of MAE's encoder with no patch left out, in order."""
    inner = getattr(model, "vit", model)
    inner.config.mask_ratio = inner.embeddings.config.mask_ratio = 0.0
    return inner(images, noise=torch.arange(16.0).expand(len(images), -1)).last_hidden_state[:, 0]
