"""Families beyond the paper's model, against `transformers` itself: its files in, ours out, the same numbers."""

import json

import pytest
import torch

import vitrail
from tests.checkpoint.making import made
from tests.tiny import close, images_for, vit_config
from vitrail import CheckpointError, RotaryConfig

transformers = pytest.importorskip("transformers")

SMALL = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "patch_size": 4,
    "image_size": 16,
    "num_labels": 5,
}
DINO = {name: value for name, value in SMALL.items() if name != "intermediate_size"} | {"mlp_ratio": 2}
TEXT = {
    "hidden_size": 32,
    "num_hidden_layers": 1,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "vocab_size": 99,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 1,
}


def logits(model, images):
    return model(images).logits


def pooled(model, images):
    return model(images).pooler_output


def first(model, images):
    return model(images).last_hidden_state[:, 0]


def mean(model, images):
    return model(images).last_hidden_state.mean(dim=1)


def unmasked(model, images):
    """MAE's encoder with no patch left out, in order."""
    inner = getattr(model, "vit", model)
    inner.config.mask_ratio = inner.embeddings.config.mask_ratio = 0.0
    return inner(images, noise=torch.arange(16.0).expand(len(images), -1)).last_hidden_state[:, 0]


def embedded(model, images):
    return model(images).image_embeds


def image_features(model, images):
    return model.get_image_features(images).pooler_output


# Name -> class, its config and settings, and its output; then fields of ours.
FAMILIES = {
    "DeiT": ("DeiTForImageClassificationWithTeacher", "DeiTConfig", SMALL, logits, {"pool": "distilled"}),
    "DeiT, class token": ("DeiTForImageClassification", "DeiTConfig", SMALL, logits, {"pool": "class-token"}),
    "DeiT, pooler": ("DeiTModel", "DeiTConfig", SMALL, pooled, {"representation_size": 32}),
    "MAE": ("ViTMAEModel", "ViTMAEConfig", SMALL, unmasked, {"pool": "class-token"}),
    "MAE with its decoder": ("ViTMAEForPreTraining", "ViTMAEConfig", SMALL, unmasked, {}),
    "MSN": ("ViTMSNModel", "ViTMSNConfig", SMALL, first, {"norm_eps": 1e-6}),
    "MSN, classes": ("ViTMSNForImageClassification", "ViTMSNConfig", SMALL, logits, {}),
    "I-JEPA": ("IJepaModel", "IJepaConfig", SMALL, mean, {"pool": "mean", "class_token": False}),
    "I-JEPA, classes": ("IJepaForImageClassification", "IJepaConfig", SMALL, logits, {"pool": "mean"}),
    "DINOv2": ("Dinov2Model", "Dinov2Config", DINO, pooled, {"layer_scale": 1.0}),
    "DINOv2, classes": ("Dinov2ForImageClassification", "Dinov2Config", DINO, logits, {"pool": "class-and-mean"}),
    "DINOv2 giant": ("Dinov2Model", "Dinov2Config", DINO | {"use_swiglu_ffn": True}, pooled, {"mlp": "swiglu"}),
    "DINOv2 with registers": ("Dinov2WithRegistersModel", "Dinov2WithRegistersConfig", DINO, pooled, {"registers": 4}),
    "DINOv2 with registers, classes": (
        "Dinov2WithRegistersForImageClassification",
        "Dinov2WithRegistersConfig",
        DINO,
        logits,
        {"position_resize": "timm"},
    ),
    "DINOv3": (
        "DINOv3ViTModel",
        "DINOv3ViTConfig",
        SMALL | {"num_register_tokens": 4},
        pooled,
        {"rotary": RotaryConfig(), "positions": "none"},
    ),
    "DINOv3 without registers": (
        "DINOv3ViTModel",
        "DINOv3ViTConfig",
        SMALL | {"num_register_tokens": 0},
        pooled,
        {"registers": 0},
    ),
    "DINOv3 with SwiGLU": (
        "DINOv3ViTModel",
        "DINOv3ViTConfig",
        SMALL | {"num_register_tokens": 4, "use_gated_mlp": True, "hidden_act": "silu"},
        pooled,
        {"mlp": "swiglu"},
    ),
    "SigLIP": ("SiglipVisionModel", "SiglipVisionConfig", SMALL, pooled, {"pool": "attention", "gelu": "tanh"}),
    "SigLIP, both towers": (
        "SiglipModel",
        "SiglipConfig",
        {"vision_config": SMALL, "text_config": TEXT},
        image_features,
        {"num_classes": 0},
    ),
    "SigLIP, classes": (
        "SiglipForImageClassification",
        "SiglipConfig",
        {"vision_config": SMALL, "text_config": TEXT, "num_labels": 5},
        logits,
        {"pool": "mean"},
    ),
    "CLIP": ("CLIPVisionModel", "CLIPVisionConfig", SMALL, pooled, {"norm_embedded": True, "gelu": "quick"}),
    "OpenCLIP": ("CLIPVisionModel", "CLIPVisionConfig", SMALL | {"hidden_act": "gelu"}, pooled, {"gelu": "erf"}),
    "CLIP, projection": (
        "CLIPVisionModelWithProjection",
        "CLIPVisionConfig",
        SMALL | {"projection_dim": 20},
        embedded,
        {"projection_size": 20},
    ),
    "CLIP, both towers": (
        "CLIPModel",
        "CLIPConfig",
        {"vision_config": SMALL, "text_config": TEXT, "projection_dim": 20},
        image_features,
        {"projection_size": 20, "feature_width": 20},
    ),
    "CLIP, classes": (
        "CLIPForImageClassification",
        "CLIPConfig",
        {"vision_config": SMALL, "text_config": TEXT, "num_labels": 5},
        logits,
        {"norm_encoded": False, "pool": "mean"},
    ),
    "ViT without biases of q, k and v": (
        "ViTForImageClassification",
        "ViTConfig",
        SMALL | {"qkv_bias": False},
        logits,
        {},
    ),
}


def theirs(kind: str, config: str, settings: dict, **changes):
    torch.manual_seed(0)
    model = getattr(transformers, kind)(getattr(transformers, config)(**settings | changes)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    return model


def images_like(height: int, width: int) -> torch.Tensor:
    return torch.randn(2, 3, height, width, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("name", FAMILIES)
def test_outputs_are_those_of_transformers(name, tmp_path) -> None:
    kind, config, settings, output, fields = FAMILIES[name]
    source = theirs(kind, config, settings)
    source.save_pretrained(tmp_path)
    model = vitrail.load(tmp_path)
    images = images_like(16, 16)
    close(model(images), output(source, images), 1e-5)
    for field, value in fields.items():
        assert getattr(model.config, field) == value


@pytest.mark.parametrize("name", FAMILIES)
def test_the_names_in_memory_are_read_too(name, tmp_path) -> None:
    kind, config, settings, output, _ = FAMILIES[name]
    source = theirs(kind, config, settings)
    source.save_pretrained(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    torch.save(source.state_dict(), tmp_path / "pytorch_model.bin")
    images = images_like(16, 16)
    close(vitrail.load(tmp_path, pickle=True)(images), output(source, images), 1e-5)


@pytest.mark.parametrize("name", ["DINOv2", "DINOv2 with registers", "DINOv3", "DINOv2, classes"])
@pytest.mark.parametrize("size", [(24, 24), (16, 28), (32, 8)])
def test_other_sizes_are_as_published(name, size, tmp_path) -> None:
    """Interpolated positions of DINOv2 and rotary ones of DINOv3, of other sizes and rectangles."""
    kind, config, settings, output, _ = FAMILIES[name]
    source = theirs(kind, config, settings)
    source.save_pretrained(tmp_path)
    images = images_like(*size)
    close(vitrail.load(tmp_path, image_size=size)(images), output(source, images), 1e-5)


@pytest.mark.parametrize("name", ["CLIP", "SigLIP"])
def test_another_size_is_interpolated_as_transformers_does(name, tmp_path) -> None:
    kind, config, settings, _, _ = FAMILIES[name]
    source = theirs(kind, config, settings)
    source.save_pretrained(tmp_path)
    images = images_like(24, 20)
    wanted = source(images, interpolate_pos_encoding=True).pooler_output
    close(vitrail.load(tmp_path, image_size=(24, 20))(images), wanted, 1e-5)


def test_pixels_that_fill_no_patch_are_dropped_as_the_convolution_does(tmp_path) -> None:
    source = theirs("SiglipVisionModel", "SiglipVisionConfig", SMALL | {"image_size": 18})
    source.save_pretrained(tmp_path)
    model = vitrail.load(tmp_path)
    assert (model.config.image_size, model.config.grid, model.config.trim) == ((18, 18), (4, 4), True)
    images = images_like(18, 18)
    close(model(images), source(images).pooler_output, 1e-5)


# Ours -> the class that holds it, and its output.
WRITTEN = {
    "DeiT": (
        vit_config(distillation_token=True, pool="distilled"),
        "DeiTForImageClassificationWithTeacher",
        logits,
    ),
    "I-JEPA": (vit_config(pool="mean"), "IJepaForImageClassification", logits),
    "DINOv2": (vit_config(layer_scale=0.1, num_classes=0, image_size=(16, 16)), "Dinov2Model", pooled),
    "DINOv2, classes": (
        vit_config(layer_scale=0.1, pool="class-and-mean", image_size=(16, 16)),
        "Dinov2ForImageClassification",
        logits,
    ),
    "DINOv2 giant": (
        vit_config(layer_scale=0.1, mlp="swiglu", registers=2, num_classes=0, image_size=(16, 16)),
        "Dinov2WithRegistersModel",
        pooled,
    ),
    "DINOv3": (
        vit_config(rotary=RotaryConfig(), positions="none", registers=2, layer_scale=0.1, num_classes=0),
        "DINOv3ViTModel",
        pooled,
    ),
    "CLIP": (
        vit_config(norm_embedded=True, gelu="quick", num_classes=0, image_size=(16, 16)),
        "CLIPVisionModel",
        pooled,
    ),
    "CLIP, projection": (
        vit_config(norm_embedded=True, gelu="quick", num_classes=0, image_size=(16, 16), projection_size=20),
        "CLIPVisionModelWithProjection",
        embedded,
    ),
    "SigLIP": (vit_config(pool="attention", num_classes=0, image_size=(16, 16)), "SiglipVisionModel", pooled),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_transformers_loads_what_we_write(name, tmp_path) -> None:
    config, kind, output = WRITTEN[name]
    model = made(config)
    vitrail.save(model, tmp_path / "x", to="huggingface")
    loaded, report = getattr(transformers, kind).from_pretrained(tmp_path / "x", output_loading_info=True)
    assert not report["missing_keys"]
    assert not report["unexpected_keys"]
    assert not report["mismatched_keys"]
    images = images_for(config)
    close(output(loaded.eval(), images), model(images), 1e-5)
    assert json.loads((tmp_path / "x" / "config.json").read_text())["architectures"] == [kind]
    close(vitrail.load(tmp_path / "x")(images), model(images), 1e-5)


@pytest.mark.parametrize("name", ["CLIP", "DINOv2", "SigLIP", "DeiT"])
def test_weights_without_their_config_are_told_by_their_tensors(name, tmp_path) -> None:
    kind, config, settings, output, _ = FAMILIES[name]
    source = theirs(kind, config, settings)
    source.save_pretrained(tmp_path)
    (tmp_path / "config.json").unlink()
    if name == "CLIP":
        with pytest.raises(CheckpointError, match=r"OpenAI's have quick, OpenCLIP's erf; give gelu\."):
            vitrail.load(tmp_path, num_heads=4)
    answers = {"gelu": "quick"} if name == "CLIP" else {}
    images = images_like(16, 16)
    close(vitrail.load(tmp_path, num_heads=4, **answers)(images), output(source, images), 1e-5)


def test_a_file_that_mixes_two_layouts_is_refused(tmp_path) -> None:
    source = theirs(*FAMILIES["MSN"][:3])
    state = source.state_dict()
    state["encoder.layer.0.attention.attention.query.weight"] = torch.zeros(32, 32)
    torch.save(state, tmp_path / "x.pth")
    with pytest.raises(CheckpointError, match=r"mixes two layouts: .* are the same part of a model"):
        vitrail.load(tmp_path / "x.pth", pickle=True, num_heads=4)


def test_a_distilled_model_asked_for_class_token_features_is_refused_in_a_sentence(tmp_path) -> None:
    source = theirs(*FAMILIES["DeiT"][:3])
    source.save_pretrained(tmp_path)
    with pytest.raises(vitrail.ConfigError, match=r"the head of the file sees 64 \(pool='distilled'\); give another"):
        vitrail.load(tmp_path, pool="class-token")
    model = vitrail.load(tmp_path, pool="class-token", num_classes=0)
    images = images_like(16, 16)
    close(model(images), source.deit(images).last_hidden_state[:, 0], 1e-5)
