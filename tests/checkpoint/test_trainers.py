"""Files that mmpretrain and Lightning wrote themselves, beside the outputs of their own models (golden/trainers)."""

from pathlib import Path

import numpy as np
import pytest
import torch

import vitrail
from tests.tiny import close
from vitrail import CheckpointError
from vitrail.checkpoint.mmpretrain import parse

RECORDED = Path(__file__).parent.parent / "golden" / "trainers"
IMAGENET = (0.485, 0.456, 0.406)
CLASSES = ("ant", "bee", "cat", "dog", "elk")
# Recorded model of mmpretrain -> fields of ours.
MODELS = {
    "plain": {"pool": "class-token", "gelu": "erf", "norm_eps": 1e-6, "layer_scale": None},
    "layer_scale": {"pool": "class-token"},
    "mean": {"pool": "mean", "norm_pooled": True},
    "mean_by_neck": {"pool": "mean", "norm_pooled": False},
    "distilled": {"pool": "distilled"},
    "clip": {"norm_embedded": True, "gelu": "quick"},
    "epsilon": {"norm_eps": 1e-3},
    "representation": {"representation_size": 12},
    "swiglu": {"mlp": "swiglu"},
    "no_qkv_bias": {"pool": "class-token"},
}
HINTS = {"num_heads": 4, "gelu": "erf", "norm_eps": 1e-6, "pool": "class-token"}


def saved(name: str) -> dict:
    """What a run of mmpretrain saves of a recorded model."""
    recorded = np.load(RECORDED / f"mm_{name}.npz")
    weights = {key[8:]: torch.tensor(recorded[key]).float() for key in recorded if key.startswith("weights:")}
    meta = {"cfg": str(recorded["config"]), "mmengine_version": "0.10.7", "dataset_meta": {"classes": CLASSES}}
    return {"meta": meta, "state_dict": weights, "message_hub": {}}


def check(path: Path, outputs: Path, **answers) -> torch.nn.Module:
    """Load a file for every recorded size, and compare."""
    recorded = np.load(outputs)
    sizes = [key[7:] for key in recorded if key.startswith("images:")]
    assert sizes
    for size in sizes:
        height, width = map(int, size.split("x"))
        model = vitrail.load(path, pickle=True, **answers, image_size=(height, width))
        close(model(torch.tensor(recorded[f"images:{size}"]).float()), recorded[f"outputs:{size}"], 1e-5)
    return model


def test_every_recorded_file_is_tested() -> None:
    names = {f"mm_{name}.npz" for name in MODELS}
    for name in ("mm_run.pth", "mm_run_averaged.pth", *(f"lightning{kind}.ckpt" for kind in KINDS)):
        names |= {name, f"{name.partition('.')[0]}.outputs.npz"}
    assert {path.name for path in RECORDED.iterdir()} == names


@pytest.mark.parametrize("name", MODELS)
def test_a_model_of_mmpretrain_is_what_its_settings_state(name, tmp_path) -> None:
    torch.save(saved(name), tmp_path / "x.pth")
    model = check(tmp_path / "x.pth", RECORDED / f"mm_{name}.npz")
    for field, value in MODELS[name].items():
        assert getattr(model.config, field) == value, field
    assert model.info.labels == CLASSES
    pixels = model.info.preprocessing
    assert pixels.mean == pytest.approx(IMAGENET)
    assert (pixels.geometry, pixels.interpolation, pixels.crop_fraction) == ("crop", "bicubic", 16 / 20)


@pytest.mark.parametrize("name", ["mm_run", "mm_run_averaged"])
def test_a_run_of_mmengine_gives_the_weights_that_it_evaluates(name) -> None:
    """With an average, mmengine saves it as `state_dict`, and the weights themselves as `ema_state_dict`."""
    model = check(RECORDED / f"{name}.pth", RECORDED / f"{name}.outputs.npz")
    assert model.info.labels == CLASSES
    notes = " ".join(model.info.notes)
    assert "a checkpoint of training by mmpretrain" in notes
    words = "the average of the weights (state_dict) was taken, not the weights themselves (ema_state_dict)"
    assert (words in notes) == (name == "mm_run_averaged")


KINDS = {
    "": {"num_heads": 4, "gelu": "erf", "norm_eps": 1e-6, "pool": "class-token"},
    "_averaged": {"num_heads": 4, "gelu": "erf", "norm_eps": 1e-6, "pool": "class-token"},
    "_transformers": {"num_heads": 4},
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_checkpoint_of_lightning_gives_the_model_that_it_evaluates(kind) -> None:
    model = check(RECORDED / f"lightning{kind}.ckpt", RECORDED / f"lightning{kind}.outputs.npz", **KINDS[kind])
    notes = " ".join(model.info.notes)
    assert "a checkpoint of training by Lightning" in notes
    assert f"what lies outside {'net' if kind == '_averaged' else 'model'} was left aside: criterion.weight" in notes
    words = "the average of the weights (state_dict) was taken, not the weights themselves (current_model_state)"
    assert (words in notes) == (kind == "_averaged")


def test_weights_of_mmpretrain_without_their_settings_are_asked_about(tmp_path) -> None:
    torch.save({"meta": {}, "state_dict": saved("plain")["state_dict"]}, tmp_path / "x.pth")
    with pytest.raises(CheckpointError, match="does not state its num_heads"):
        vitrail.load(tmp_path / "x.pth", pickle=True)
    model = check(tmp_path / "x.pth", RECORDED / "mm_plain.npz", num_heads=4, gelu="erf", pool="class-token")
    assert model.info.preprocessing is None


def test_a_deit3_of_mmpretrain_is_asked_about(tmp_path) -> None:
    """Its program has used one norm of a block for both branches since 1.0; what Meta published has two."""
    file = saved("layer_scale")
    table = file["state_dict"]["backbone.pos_embed"]
    file["state_dict"]["backbone.pos_embed"] = table[:, 1:]
    torch.save(file, tmp_path / "x.pth")
    with pytest.raises(CheckpointError, match="is a DeiT3 of mmpretrain, whose program applies the first norm"):
        vitrail.load(tmp_path / "x.pth", pickle=True)
    model = vitrail.load(tmp_path / "x.pth", pickle=True, architecture="deit3_small_patch16_224")
    file["state_dict"]["backbone.pos_embed"] = torch.cat([torch.zeros(1, 1, 16), table[:, 1:]], dim=1)
    torch.save(file, tmp_path / "y.pth")
    images = torch.randn(2, 3, 16, 16)
    close(model(images), vitrail.load(tmp_path / "y.pth", pickle=True)(images), 1e-6)


def test_the_small_models_of_mmpretrain_have_six_heads_or_twelve(tmp_path) -> None:
    """deit-small and mocov3-small have the same tensors."""
    config = vitrail.ViTConfig(
        dim=384, depth=1, num_heads=12, mlp_dim=64, patch_size=(16, 16), image_size=(32, 32), num_classes=0, gelu="erf"
    )
    vitrail.save(vitrail.build(config, seed=0), tmp_path / "s.safetensors", to="timm")
    from safetensors.torch import load_file

    from tests.checkpoint.test_training import mm_names

    state = mm_names(load_file(tmp_path / "s.safetensors"))
    torch.save({"state_dict": state}, tmp_path / "x.pth")
    with pytest.raises(CheckpointError, match="num_heads: of mmpretrain's models of its sizes deit-small has 6 and"):
        vitrail.load(tmp_path / "x.pth", pickle=True, gelu="erf", pool="class-token")
    momentum = {name.replace("backbone.", "momentum_encoder.module.0."): value for name, value in state.items()}
    torch.save({"state_dict": state | momentum}, tmp_path / "x.pth")
    model = vitrail.load(tmp_path / "x.pth", pickle=True, gelu="erf", pool="class-token")
    assert model.config.num_heads == 12
    assert "the model backbone was taken, not momentum_encoder.module.0." in model.info.notes


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("patch_size=4", "patch_size=4, layer_cfgs=dict(act_cfg=dict(type='ReLU'))", "has the activation 'ReLU'"),
        ("patch_size=4", "patch_size=4, patch_cfg=dict(stride=2)", "of mmpretrain that has patches with stride, which"),
        (
            "patch_size=4",
            "patch_size=4, norm_cfg=dict(type='BN')",
            "of mmpretrain that has norms of the kind BN, which",
        ),
        ("in_channels=16", "in_channels=16, act_cfg=dict(type='ReLU')", "that has a head with ReLU, which is not read"),
    ],
)
def test_settings_of_mmpretrain_that_no_model_here_has_are_refused(old, new, message, tmp_path) -> None:
    file = saved("plain")
    assert old in file["meta"]["cfg"]
    file["meta"]["cfg"] = file["meta"]["cfg"].replace(old, new, 1)
    torch.save(file, tmp_path / "x.pth")
    with pytest.raises(CheckpointError, match=message):
        vitrail.load(tmp_path / "x.pth", pickle=True)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("backend='pillow'", "backend='cv2'"),
        ("to_rgb=True", "to_rgb=False"),
        ("type='CenterCrop'", "type='Rotate'"),
        ("crop_size=16", "crop_size=99"),
        ("mean=[", "mean=5, other=["),
        ("test_pipeline = [", "test_pipeline = 5\nother = ["),
    ],
)
def test_pixels_of_mmpretrain_that_cannot_be_followed_are_asked_for(old, new, tmp_path) -> None:
    file = saved("plain")
    assert old in file["meta"]["cfg"]
    file["meta"]["cfg"] = file["meta"]["cfg"].replace(old, new)
    torch.save(file, tmp_path / "x.pth")
    info = vitrail.load(tmp_path / "x.pth", pickle=True).info
    assert info.preprocessing is None
    assert "does not state how images become its input" in info.doubt


def test_settings_are_parsed_and_never_run() -> None:
    text = "a = dict(b=[1, -2.5], c={'d': (None, True)}, e=open('x'), **{})\nf = a.b\n__import__('os')\ng = 'h'"
    assert parse(text) == {"a": {"b": [1, -2.5], "c": {"d": [None, True]}, "e": None}, "f": None, "g": "h"}
    for broken in ("a = (", "(" * 10_000, "a = " + "[" * 10_000, "\0", "a = '" + "x" * 2_000_000 + "'"):
        assert parse(broken) == {}
