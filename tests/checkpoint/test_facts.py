"""What tensors do not show: heads, GELU, pooling, pixels; from settings, from tables, or asked for."""

import json

import pytest
import torch
from safetensors.torch import load_file, save_file

import vitrail
from tests.checkpoint.making import made, recorded
from tests.tiny import close, images_for, vit_config
from vitrail import CheckpointError
from vitrail.checkpoint.formats.torchvision_pixels import PUBLISHED, tell_pixels
from vitrail.checkpoint.infer import tell_heads

SQUARE = {"image_size": (16, 16), "patch_size": (4, 4)}


def bare(config, folder, **changes):
    """A model and its timm state dict, without what we note in the header."""
    model = made(config)
    state = load_file(vitrail.save(model, folder / "noted.safetensors", to="timm"))
    for name, value in changes.items():
        state[name] = value
    save_file(state, folder / "x.safetensors")
    return model, folder / "x.safetensors"


def timm_folder(config, folder, **changes):
    """A model in a folder as timm writes it, with other settings."""
    model = made(config)
    vitrail.save(model, folder / "x", to="timm")
    state = load_file(folder / "x" / "model.safetensors")
    save_file(state, folder / "x" / "model.safetensors")
    path = folder / "x" / "config.json"
    settings = json.loads(path.read_text())
    settings["model_args"] |= changes.pop("model_args", {})
    path.write_text(json.dumps(settings | changes))
    return model, folder / "x"


@pytest.mark.parametrize(
    ("architecture", "heads", "gelu"),
    [
        ("vit_so400m_patch14_siglip_224", 16, "erf"),
        ("vit_so400m_patch16_siglip_256", 16, "tanh"),
        ("vit_giantopt_patch16_siglip_256", 16, "tanh"),
        ("vit_base_patch32_siglip_256", 12, "tanh"),
        ("vit_base_patch16_siglip_224", 12, "erf"),
    ],
)
def test_the_name_of_an_architecture_tells_heads_and_gelu(architecture, heads, gelu, tmp_path) -> None:
    config = vit_config(dim=48, num_heads=heads, gelu=gelu, pool="attention", num_classes=0, **SQUARE)
    model, path = bare(config, tmp_path)
    loaded = vitrail.load(path, architecture=architecture)
    assert (loaded.config.num_heads, loaded.config.gelu) == (heads, gelu)
    images = images_for(config)
    close(loaded(images), model(images), 1e-5)


def test_heads_of_a_model_of_other_sizes_are_not_taken_over(tmp_path) -> None:
    """Only DINOv2's giant has these parts in timm, with 24 heads; a narrower model may have any number."""
    config = vit_config(dim=48, registers=4, layer_scale=1e-5, mlp="swiglu", gelu="erf", num_classes=0, **SQUARE)
    model, path = bare(config, tmp_path)
    with pytest.raises(CheckpointError, match="does not state its num_heads, and no model of timm has its sizes; give"):
        vitrail.load(path)
    images = images_for(config)
    close(vitrail.load(path, num_heads=4)(images), model(images), 1e-5)


def test_pixels_on_which_published_models_of_one_shape_differ_are_asked_for(tmp_path) -> None:
    """Ti/16 is DeiT's, with ImageNet's statistics, and AugReg's, with 0.5."""
    _, path = bare(vitrail.configure("Ti/16", num_classes=5, gelu="erf"), tmp_path)
    info = vitrail.load(path).info
    assert info.preprocessing is None
    assert "published models like it differ" in info.doubt
    for architecture, mean in (("deit_tiny_patch16_224", 0.485), ("vit_tiny_patch16_224", 0.5)):
        assert vitrail.load(path, architecture=architecture).info.preprocessing.mean[0] == mean


# Heads of SigLIP's so400m and g-opt (big_vision's vit.py), and of H/14 (MAE's models_vit.py).
@pytest.mark.parametrize(
    ("dim", "depth", "mlp_dim", "heads"), [(1152, 27, 4304, 16), (1536, 40, 6144, 16), (1280, 32, 5120, 16)]
)
def test_heads_of_published_sizes_are_known_where_no_library_is(dim, depth, mlp_dim, heads) -> None:
    assert tell_heads(dim, depth, mlp_dim, {}, "x")[0] == heads
    with pytest.raises(CheckpointError, match="x does not state how many attention heads it has"):
        tell_heads(dim, depth + 1, mlp_dim, {}, "x")


def test_pixels_that_fill_no_patch_are_dropped_by_so400m_at_384(tmp_path) -> None:
    sizes = {"dim": 48, "depth": 1, "num_heads": 16, "image_size": (384, 384), "patch_size": (14, 14), "trim": True}
    config = vit_config(**sizes, pool="attention", gelu="erf", num_classes=0)
    model, path = bare(config, tmp_path)
    loaded = vitrail.load(path, architecture="vit_so400m_patch14_siglip_384")
    assert (loaded.config.image_size, loaded.config.grid) == ((384, 384), (27, 27))
    images = images_for(config)
    close(loaded(images), model(images), 1e-5)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model_args": {"act_layer": "relu"}}, "has the activation 'relu'"),
        ({"model_args": {"act_layer": "silu"}}, "has the activation 'silu'"),
        ({"model_args": {"global_pool": "max"}}, "pools by 'max'"),
        ({"model_args": {"global_pool": "avgmax"}}, "pools by 'avgmax'"),
    ],
)
def test_settings_of_timm_that_no_model_here_has_are_refused(changes, message, tmp_path) -> None:
    _, path = timm_folder(vit_config(gelu="erf", **SQUARE), tmp_path, **changes)
    with pytest.raises(CheckpointError, match=message):
        vitrail.load(path)


def test_quick_gelu_of_a_timm_folder_is_read(tmp_path) -> None:
    config = vit_config(gelu="quick", **SQUARE)
    model, path = timm_folder(config, tmp_path)
    assert json.loads((path / "config.json").read_text())["model_args"]["act_layer"] == "quick_gelu"
    images = images_for(config)
    close(vitrail.load(path)(images), model(images), 1e-5)


@pytest.mark.parametrize("parts", [{"projection_size": 12, "num_classes": 0}, {"num_classes": 3}])
def test_an_image_tower_of_clip_is_written_as_a_timm_folder(parts, tmp_path) -> None:
    config = vit_config(gelu="quick", norm_embedded=True, norm_eps=1e-5, **parts, **SQUARE)
    model, path = timm_folder(config, tmp_path)
    settings = json.loads((path / "config.json").read_text())
    assert settings["architecture"] == "vit_base_patch16_clip_224"
    assert settings["num_classes"] == settings["pretrained_cfg"]["num_classes"] == max(parts.values())
    loaded = vitrail.load(path)
    assert (loaded.config.norm_eps, loaded.config.projection_size) == (1e-5, config.projection_size)
    images = images_for(config)
    close(loaded(images), model(images), 1e-5)


def test_pooling_at_the_top_of_a_timm_folder_is_read(tmp_path) -> None:
    config = vit_config(pool="mean", class_token=True, gelu="erf", **SQUARE)
    model, path = timm_folder(config, tmp_path)
    settings = json.loads((path / "config.json").read_text())
    assert settings["global_pool"] == "avg"
    del settings["model_args"]["global_pool"]
    (path / "config.json").write_text(json.dumps(settings))
    images = images_for(config)
    close(vitrail.load(path)(images), model(images), 1e-5)


@pytest.mark.parametrize("pool", ["attention", "mean"])
@pytest.mark.parametrize("pool_prefix", [True, False])
def test_a_timm_folder_states_whether_pooling_sees_the_class_token(pool, pool_prefix, tmp_path) -> None:
    config = vit_config(pool=pool, class_token=True, pool_prefix=pool_prefix, gelu="erf", **SQUARE)
    model, path = timm_folder(config, tmp_path)
    arguments = json.loads((path / "config.json").read_text())["model_args"]
    assert arguments.get("pool_include_prefix", False) == pool_prefix
    images = images_for(config)
    close(vitrail.load(path)(images), model(images), 1e-5)


def test_a_norm_after_pooling_that_its_architecture_has_not_is_asked_about(tmp_path) -> None:
    """MAE's fine-tuned models are B/16 with a mean and fc_norm; timm's B/16 has a class token and none."""
    config = vit_config(pool="mean", class_token=True, norm_pooled=True, gelu="erf", num_heads=12, dim=48, **SQUARE)
    model, path = bare(config, tmp_path)
    with pytest.raises(CheckpointError, match=r"has a LayerNorm after pooling \(fc_norm\), unlike .*; give pool\."):
        vitrail.load(path, architecture="vit_base_patch16_224")
    images = images_for(config)
    close(vitrail.load(path, architecture="vit_base_patch16_224", pool="mean")(images), model(images), 1e-5)


@pytest.mark.parametrize("architecture", ["vit_base_patch16_rpn_224", "eva02_enormous_patch14_clip_224"])
def test_models_that_only_look_plain_are_refused(architecture, tmp_path) -> None:
    _, path = bare(vit_config(gelu="erf", **SQUARE), tmp_path)
    with pytest.raises(CheckpointError, match="is a timm model with a LayerNorm after each branch and not before it"):
        vitrail.load(path, architecture=architecture)


def test_a_folder_of_an_architecture_that_is_not_known_is_refused_by_its_name(tmp_path) -> None:
    """As of Qwen's towers, which look plain and turn their queries and keys."""
    config = vit_config(gelu="erf", **SQUARE)
    model, path = timm_folder(config, tmp_path, architecture="qwen3_vit_88m")
    with pytest.raises(CheckpointError, match="is timm's 'qwen3_vit_88m', which is not known here, so that it may"):
        vitrail.load(path, num_heads=4)
    images = images_for(config)
    close(vitrail.load(path, architecture="vit_base_patch16_224", num_heads=4)(images), model(images), 1e-5)


def test_attention_pooling_with_an_mlp_of_its_own_width_is_refused(tmp_path) -> None:
    """As the largest Perception Encoder has it."""
    config = vit_config(pool="attention", num_classes=0, gelu="erf", **SQUARE)
    _, path = bare(config, tmp_path)
    state = load_file(path)
    state["attn_pool.mlp.fc1.weight"] = torch.zeros(96, config.dim)
    save_file(state, path)
    with pytest.raises(CheckpointError, match="with an MLP of another width in its attention pooling, which no model"):
        vitrail.load(path, architecture="vit_base_patch16_siglip_224")


def test_rotary_positions_without_tensors_are_not_overlooked(tmp_path) -> None:
    """A plain table, a class token and gamma_1: one of timm's models like that turns queries and keys too."""
    config = vit_config(layer_scale=1e-5, gelu="erf", dim=48, num_heads=12, **SQUARE)
    _, path = bare(config, tmp_path)
    state = load_file(path)
    names = {name: name.replace(".ls1.gamma", ".gamma_1").replace(".ls2.gamma", ".gamma_2") for name in state}
    save_file({names[name]: value for name, value in state.items()}, path)
    loaded = vitrail.load(path, architecture="vit_base_patch16_rope_ape_224")
    assert loaded.config.rotary is not None
    assert loaded.config.positions == "learned-1d"


def test_another_model_of_transformers_with_timms_names_is_refused_by_its_type(tmp_path) -> None:
    """As of SAM and others; the type that wraps a model of timm is read."""
    config = vit_config(gelu="erf", **SQUARE)
    model, path = timm_folder(config, tmp_path, model_type="sam_vision_model")
    with pytest.raises(CheckpointError, match="a Hugging Face model of the type 'sam_vision_model', which has windows"):
        vitrail.load(path)
    settings = json.loads((path / "config.json").read_text()) | {"model_type": "timm_wrapper"}
    (path / "config.json").write_text(json.dumps(settings))
    state = load_file(path / "model.safetensors")
    save_file({f"timm_model.{name}": value for name, value in state.items()}, path / "model.safetensors")
    images = images_for(config)
    close(vitrail.load(path)(images), model(images), 1e-5)


@pytest.mark.parametrize("stated", ["img_size", "input_size"])
def test_a_rectangle_of_a_timm_folder_is_read_as_one(stated, tmp_path) -> None:
    """In the arguments, whatever images the published model is for, or as those images."""
    config = vit_config(image_size=(8, 32), patch_size=(4, 4), gelu="erf")
    model, path = timm_folder(config, tmp_path)
    settings = json.loads((path / "config.json").read_text())
    if stated == "img_size":
        settings["pretrained_cfg"]["input_size"] = [3, 224, 224]
    else:
        del settings["model_args"]["img_size"]
    (path / "config.json").write_text(json.dumps(settings))
    loaded = vitrail.load(path)
    assert loaded.config.image_size == (8, 32)
    images = images_for(config)
    close(loaded(images), model(images), 1e-5)


def test_a_lossy_file_is_read_back_as_what_it_became(tmp_path) -> None:
    model = made(vit_config(gelu="tanh", **SQUARE))
    path = vitrail.save(model, tmp_path / "x.safetensors", to="torchvision", lossy=True)
    assert vitrail.load(path).config.gelu == "erf"


def test_torchvision_has_no_model_of_one_channel(tmp_path) -> None:
    with pytest.raises(CheckpointError, match="images of 1 channels"):
        vitrail.save(made(vit_config(channels=1, gelu="erf", **SQUARE)), tmp_path / "x.safetensors", to="torchvision")


# Resize, crop and interpolation of torchvision's own weights (torchvision.models.ViT_*_Weights).
@pytest.mark.parametrize(
    ("dim", "patch", "size", "wanted"),
    [
        (768, 16, 384, (1.0, "bicubic")),
        (768, 16, 224, None),
        (768, 32, 224, (224 / 256, "bilinear")),
        (1024, 16, 512, (1.0, "bicubic")),
        (1024, 16, 224, None),
        (1024, 32, 224, (224 / 256, "bilinear")),
        (1280, 14, 518, (1.0, "bicubic")),
        (1280, 14, 224, (1.0, "bicubic")),
    ],
)
def test_pixels_of_torchvision_are_those_of_its_weights_or_asked_for(dim, patch, size, wanted) -> None:
    config = vit_config(dim=dim, num_heads=16, patch_size=(patch, patch), image_size=(size, size))
    pixels, doubt = tell_pixels(config, {}, "x")
    assert (pixels and (pixels.crop_fraction, pixels.interpolation)) == wanted
    assert (doubt is None) == (wanted is not None)
    name = next(name for name, width, side in PUBLISHED if (width, side) == (dim, patch))
    if wanted is None:
        assert f"published weights like it differ ({name}.IMAGENET1K_V1, {name}.IMAGENET1K_SWAG_LINEAR_V1)" in doubt
        pixels, _ = tell_pixels(config, {"architecture": f"{name}.IMAGENET1K_V1"}, "x")
        assert pixels.crop_fraction == (224 / 242 if name == "vit_l_16" else 224 / 256)
        assert pixels.interpolation == "bilinear"


def test_weights_that_torchvision_does_not_publish_are_refused_by_name(tmp_path) -> None:
    torch.save(recorded("torchvision_token")[0], tmp_path / "x.pth")
    with pytest.raises(CheckpointError, match=r"torchvision has no weights 'vit_b_17'\."):
        vitrail.load(tmp_path / "x.pth", pickle=True, num_heads=3, architecture="vit_b_17")


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_files_of_half_precision_become_float32_unless_asked_otherwise(dtype, tmp_path) -> None:
    config = vit_config(gelu="erf", num_heads=3, dim=24, **SQUARE)
    state = {name: value.to(dtype) for name, value in load_file(bare(config, tmp_path)[1]).items()}
    save_file(state, tmp_path / "half.safetensors")
    answers = {"architecture": "deit_tiny_patch16_224"}
    images = images_for(config)
    loaded = vitrail.load(tmp_path / "half.safetensors", **answers)
    assert {parameter.dtype for parameter in loaded.parameters()} == {torch.float32}
    half = vitrail.load(tmp_path / "half.safetensors", dtype=dtype, **answers)
    assert half(images).dtype == dtype  # float32 images are converted
    close(half(images).float(), loaded(images), 0.1)
    close(loaded(images.half()), loaded(images.half().float()), 0.0)
