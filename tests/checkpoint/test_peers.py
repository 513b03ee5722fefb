"""Files of timm and torchvision, recorded with the libraries themselves: the same logits."""

import json

import pytest
import torch
from safetensors.torch import load_file, save_file

import vitrail
from tests.checkpoint.making import RECORDED, TIMM_BACKBONE, hybrid, made, recorded, same_weights
from tests.tiny import close, vit_config
from vitrail.checkpoint.infer import tell_heads

# What models like these differ in, so that it must be said.
ASKED = {
    "timm_mean": {"gelu": "erf", "norm_eps": 1e-6},
    "timm_mean_beside_class_token": {"norm_eps": 1e-6},
    "timm_attention": {"gelu": "erf"},
}
EXPECTED = {
    "timm_token": {"pool": "class-token", "gelu": "erf", "norm_eps": 1e-6, "position_resize": "timm"},
    "timm_mean": {"pool": "mean", "norm_pooled": True, "class_token": False},
    "timm_mean_beside_class_token": {"pool": "mean", "norm_pooled": True, "class_token": True},
    "timm_attention": {"pool": "attention", "class_token": False},
    "timm_no_class_entry": {"pool": "class-token", "class_token": True},
    "timm_hybrid": {"depth": 2, "patch_size": (1, 1)},
    "timm_hybrid_root": {"depth": 2, "patch_size": (4, 4)},
    "timm_bit": {"blocks": (1, 2), "width": 32, "standardisation_eps": 1e-8},
    "torchvision_token": {"gelu": "erf", "norm_eps": 1e-6, "position_resize": "torchvision", "image_size": (24, 24)},
    "torchvision_representation": {"representation_size": 10},
}


def stored(name: str, folder, suffix: str = ".safetensors"):
    weights, images, logits = recorded(name)
    path = folder / f"x{suffix}"
    if suffix == ".safetensors":
        save_file(weights, path)
    else:
        torch.save(weights, path)
    settings = {"image_size": tuple(images.shape[2:])}
    settings |= {} if name == "timm_bit" else {"num_heads": 3}
    return path, settings | ASKED.get(name, {}), images, logits


def test_every_recorded_model_is_tested() -> None:
    assert {path.stem for path in RECORDED.glob("*.npz")} == set(EXPECTED)


@pytest.mark.parametrize("name", EXPECTED)
@pytest.mark.parametrize("suffix", [".safetensors", ".pth"])
def test_logits_are_the_librarys(name, suffix, tmp_path) -> None:
    path, settings, images, logits = stored(name, tmp_path, suffix)
    model = vitrail.load(path, pickle=suffix == ".pth", **settings)
    close(model(images), logits, 1e-5)
    for field, value in EXPECTED[name].items():
        assert getattr(model.config, field) == value


def test_a_hybrid_gets_timms_numerics(tmp_path) -> None:
    path, settings, _, _ = stored("timm_hybrid", tmp_path)
    backbone = vitrail.load(path, **settings).config.backbone
    assert (backbone.blocks, backbone.width, backbone.norm_groups) == ((1, 1), 32, 32)
    assert (backbone.norm_eps, backbone.standardisation_eps, backbone.standardisation) == (1e-5, 1e-8, "sqrt-var-eps")


def test_preprocessing_is_the_librarys(tmp_path) -> None:
    path, settings, _, _ = stored("timm_token", tmp_path)
    pixels = vitrail.load(path, preprocessing="timm", **settings).info.preprocessing
    assert (pixels.geometry, pixels.crop_fraction, pixels.interpolation) == ("crop", 0.9, "bicubic")
    path, settings, _, _ = stored("torchvision_token", tmp_path)
    pixels = vitrail.load(path, **settings).info.preprocessing
    assert (pixels.geometry, pixels.interpolation, pixels.mean) == ("crop", "bilinear", (0.485, 0.456, 0.406))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("timm_token", "its num_heads, and no model of timm has its sizes; give num_heads, or"),
        ("torchvision_token", r"no published model has its sizes \(24 wide, 2 blocks, MLPs of 48\); give num_heads"),
    ],
)
def test_heads_that_no_tensor_shows_are_asked_for(name, message, tmp_path) -> None:
    path, settings, _, _ = stored(name, tmp_path)
    del settings["num_heads"]
    with pytest.raises(vitrail.CheckpointError, match=message):
        vitrail.load(path, **settings)


def test_a_wrong_head_count_is_refused(tmp_path) -> None:
    path, settings, _, _ = stored("timm_token", tmp_path)
    with pytest.raises(vitrail.CheckpointError, match="dim 24 is not divisible by num_heads 5"):
        vitrail.load(path, **settings | {"num_heads": 5})


def test_a_grid_that_is_no_square_needs_the_image_size(tmp_path) -> None:
    path, settings, _, _ = stored("timm_token", tmp_path)
    del settings["image_size"]
    with pytest.raises(vitrail.CheckpointError, match=r"7 positions.*not a square grid.*give the image_size"):
        vitrail.load(path, **settings)
    wide = vitrail.load(path, image_size=(24, 16), **settings)
    assert wide.config.image_size == (24, 16)
    assert torch.equal(wide.embedding.positions.table, recorded("timm_token")[0]["pos_embed"][0])


def test_the_first_names_of_torchvision_are_read(tmp_path) -> None:
    weights, images, logits = recorded("torchvision_token")
    old = {
        name.replace("mlp.0.", "mlp.linear_1.").replace("mlp.3.", "mlp.linear_2."): weights[name] for name in weights
    }
    assert old.keys() != weights.keys()
    save_file(old, tmp_path / "x.safetensors")
    close(vitrail.load(tmp_path / "x.safetensors", num_heads=3)(images), logits, 1e-5)


@pytest.mark.parametrize("wrapper", ["model", "state_dict"])
def test_a_wrapped_state_dict_is_found(wrapper, tmp_path) -> None:
    weights, images, logits = recorded("timm_token")
    torch.save({wrapper: {f"module.{name}": value for name, value in weights.items()}, "epoch": 3}, tmp_path / "x.pth")
    model = vitrail.load(tmp_path / "x.pth", pickle=True, num_heads=3, image_size=(16, 24))
    close(model(images), logits, 1e-5)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("blocks.0.attn.q_norm.weight", "normalised queries and keys"),
        ("blocks.0.attn.norm.weight", "sub-LN"),
        ("blocks.0.attn.relative_position_bias_table", "relative positions of another kind"),
        ("rope.freqs", "rotary positions that are learned"),
    ],
)
def test_other_models_of_timm_are_refused_by_name(name, reason, tmp_path) -> None:
    weights, _, _ = recorded("timm_token")
    save_file(weights | {name: torch.zeros(24)}, tmp_path / "x.safetensors")
    with pytest.raises(vitrail.CheckpointError, match=reason):
        vitrail.load(tmp_path / "x.safetensors", num_heads=3, image_size=(16, 24))


def test_rms_norms_are_refused_by_name(tmp_path) -> None:
    weights, _, _ = recorded("timm_token")
    save_file({key: value for key, value in weights.items() if "norm1.bias" not in key}, tmp_path / "x.safetensors")
    with pytest.raises(vitrail.CheckpointError, match="RMSNorm"):
        vitrail.load(tmp_path / "x.safetensors", num_heads=3, image_size=(16, 24))


def test_the_settings_beside_timms_weights_are_taken_over(tmp_path) -> None:
    weights, images, logits = recorded("timm_bit")
    save_file(weights, tmp_path / "model.safetensors")
    pixels = {"input_size": [3, 40, 48], "mean": [0.1, 0.2, 0.3], "crop_pct": 0.875, "interpolation": "bilinear"}
    names = list("abcde")
    (tmp_path / "config.json").write_text(
        json.dumps({"architecture": "x", "pretrained_cfg": pixels, "label_names": names})
    )
    model = vitrail.load(tmp_path)
    assert model.info.labels == tuple(names)
    assert model.config.image_size == model.info.preprocessing.image_size == (40, 48)
    assert (model.info.preprocessing.mean, model.info.preprocessing.crop_fraction) == ((0.1, 0.2, 0.3), 0.875)
    close(model(images), logits, 1e-5)


def test_a_folder_for_timm_carries_heads_labels_and_pixels(tmp_path) -> None:
    """Without what Vitrail notes in the header: as timm itself would read and write it."""
    config = vit_config(gelu="tanh", image_size=(16, 16))
    model = made(config)
    pixels = vitrail.Preprocessing(image_size=(16, 16), interpolation="bicubic", antialias=True, mean=(0.1, 0.2, 0.3))
    vitrail.save(model, tmp_path / "x", to="timm", labels=list("abcdefg"), preprocessing=pixels)
    path = tmp_path / "x" / "model.safetensors"
    save_file(load_file(path), path)
    back = vitrail.load(tmp_path / "x")
    same_weights(back, model)
    assert (back.config.num_heads, back.config.gelu) == (4, "tanh")
    assert (back.info.labels, back.info.preprocessing) == (tuple("abcdefg"), pixels)


@pytest.mark.parametrize("config", [hybrid(**TIMM_BACKBONE), vit_config(norm_eps=1e-12)])
def test_a_folder_for_timm_is_refused_where_its_list_has_no_such_model(config, tmp_path) -> None:
    with pytest.raises(vitrail.CheckpointError, match=r"write a \.safetensors file instead"):
        vitrail.save(made(config), tmp_path / "x", to="timm")


@pytest.mark.parametrize(
    ("dim", "depth", "mlp_dim", "heads"),
    [(1280, 32, 5120, 16), (192, 12, 768, 3), (1408, 40, 6144, 16), (1152, 27, 4304, 16)],
)
def test_heads_of_published_sizes_are_known(dim, depth, mlp_dim, heads) -> None:
    told, notes = tell_heads(dim, depth, mlp_dim, {}, "x")
    assert told == heads
    assert f"{heads} " in notes[0]
