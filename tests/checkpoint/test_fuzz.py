"""Mutated files and odd settings: loaded, or refused in a sentence, and nothing else."""

import json
import struct
import tempfile
from argparse import Namespace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import save

import vitrail
from tests.checkpoint.making import made, recorded
from tests.tiny import vit_config
from vitrail import CheckpointError

MM_PLAIN = Path(__file__).parent.parent / "golden" / "trainers" / "mm_plain.npz"
SMALL = vit_config(dim=16, depth=1, num_heads=2, mlp_dim=16, image_size=(16, 16))


def mutated(data: bytes, draw) -> bytes:
    """Cut, flip, overwrite, repeat or insert a part of a file."""
    changed = bytearray(data)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, max(len(changed) - 1, 0)) | st.integers(0, min(2000, max(len(changed) - 1, 0))))
        match draw(st.sampled_from(["flip", "cut", "write", "insert", "repeat", "zero"])):
            case "flip":
                changed[at : at + 1] = bytes([changed[at] ^ draw(st.integers(1, 255))]) if changed else b""
            case "cut":
                del changed[at:]
            case "write":
                new = draw(st.binary(min_size=1, max_size=16))
                changed[at : at + len(new)] = new
            case "insert":
                changed[at:at] = draw(st.binary(min_size=1, max_size=16))
            case "repeat":
                changed[at:at] = changed[at : at + draw(st.integers(1, 64))]
            case "zero":
                changed[at : at + 8] = bytes(8)
    return bytes(changed)


def seeds() -> dict[str, bytes]:
    """A good file of every kind."""
    files = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model = made(vit_config(dim=16, depth=1, num_heads=2, mlp_dim=16, image_size=(16, 16), gelu="tanh"))
        vitrail.save(model, folder / "x.safetensors")
        files["vitrail"] = (folder / "x.safetensors").read_bytes()
        for to in ("google", "big-vision"):
            vitrail.save(model, folder / "x.npz", to=to)
            files[to] = (folder / "x.npz").read_bytes()
        vitrail.save(model, folder / "y.safetensors", to="timm")
        files["timm"] = (folder / "y.safetensors").read_bytes()
        state = recorded("torchvision_token")[0]
        torch.save(state, folder / "x.pth")
        files["torch"] = (folder / "x.pth").read_bytes()
        training = {"teacher": {f"module.{name}": value for name, value in state.items()}, "args": Namespace(lr=0.1)}
        torch.save(training | {"student": state}, folder / "x.pth", _use_new_zipfile_serialization=False)
        files["torch, training"] = (folder / "x.pth").read_bytes()
    tower = {
        "conv1.weight": torch.zeros(16, 3, 4, 4),
        "class_embedding": torch.zeros(16),
        "positional_embedding": torch.zeros(17, 16),
        **{f"ln_{name}.{part}": torch.ones(16) for name in ("pre", "post") for part in ("weight", "bias")},
    }
    block = {"ln_1": (16,), "ln_2": (16,), "attn.out_proj": (16, 16), "mlp.c_fc": (32, 16), "mlp.c_proj": (16, 32)}
    for name, shape in block.items():
        tower[f"transformer.resblocks.0.{name}.weight"] = torch.zeros(shape)
        tower[f"transformer.resblocks.0.{name}.bias"] = torch.zeros(shape[0])
    tower["transformer.resblocks.0.attn.in_proj_weight"] = torch.zeros(48, 16)
    tower["transformer.resblocks.0.attn.in_proj_bias"] = torch.zeros(48)
    files["openclip"] = save(tower)
    files["torchvision"] = save(recorded("torchvision_token")[0])
    return files


GOOD = seeds()


@pytest.mark.filterwarnings("ignore:.*NaN or infinite weights")
@settings(max_examples=60)
@given(st.data())
@pytest.mark.parametrize("kind", GOOD)
def test_a_mutated_file_loads_or_is_refused_in_a_sentence(kind, tmp_path_factory, data) -> None:
    path = tmp_path_factory.mktemp("fuzz", numbered=True) / "x"
    changed = mutated(GOOD[kind], data.draw)
    path.write_bytes(changed)
    try:
        model = vitrail.load(
            path,
            pickle=kind.startswith("torch,") or kind == "torch",
            **({} if kind in ("vitrail", "google") else {"num_heads": 2}),
            **({"gelu": "quick"} if kind == "openclip" else {}),
        )
    except vitrail.VitrailError:
        return
    assert kind != "vitrail" or changed == GOOD[kind]  # ours notices every change
    assert model.config.dim


@settings(max_examples=100)
@given(
    st.binary(max_size=300), st.sampled_from([b"", b"PK\x03\x04", b"\x80\x02", struct.pack("<Q", 40) + b"{", b"<html"])
)
def test_random_bytes_are_refused_in_a_sentence(tmp_path_factory, data, start) -> None:
    path = tmp_path_factory.mktemp("fuzz", numbered=True) / "x"
    path.write_bytes(start + data)
    for allowed in (False, True):
        with pytest.raises(CheckpointError):
            vitrail.load(path, pickle=allowed)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
KEYS = {
    "huggingface": {
        "config.json": ["num_attention_heads", "image_size", "layer_norm_eps", "hidden_act", "id2label", "model_type"],
        "preprocessor_config.json": ["resample", "image_mean", "image_std", "do_normalize"],
    },
    "timm": {"config.json": ["model_args", "pretrained_cfg", "label_names", "architecture"]},
}


@settings(max_examples=60)
@given(st.data())
@pytest.mark.parametrize("kind", KEYS)
def test_odd_settings_beside_weights_are_used_or_refused_in_a_sentence(kind, tmp_path_factory, data) -> None:
    folder = tmp_path_factory.mktemp("fuzz", numbered=True)
    vitrail.save(made(SMALL), folder / "x", to=kind)
    for name, keys in KEYS[kind].items():
        path = folder / "x" / name
        settings = json.loads(path.read_text())
        settings |= data.draw(st.dictionaries(st.sampled_from(keys), json_values, max_size=2))
        for inner in ("model_args", "pretrained_cfg"):
            if isinstance(settings.get(inner), dict):
                settings[inner] |= data.draw(
                    st.dictionaries(
                        st.sampled_from(sorted(settings[inner])) if settings[inner] else st.just("a"),
                        json_values,
                        max_size=2,
                    )
                )
        path.write_text(json.dumps(settings))
    try:
        model = vitrail.load(folder / "x")
    except vitrail.VitrailError:
        return
    assert model.config.dim == 16


MM_TABLES = {
    "backbone": ("arch", "img_size", "patch_size", "out_type", "norm_cfg", "layer_cfgs", "patch_cfg", "type"),
    "head": ("act_cfg", "type"),
    "colours": ("mean", "std", "to_rgb"),
    "resize": ("scale", "backend", "edge", "interpolation", "type"),
    "crop": ("crop_size", "type"),
}


@settings(max_examples=60)
@given(st.data())
def test_odd_settings_of_mmpretrain_are_used_or_refused_in_a_sentence(tmp_path_factory, data) -> None:
    path = tmp_path_factory.mktemp("fuzz", numbered=True) / "x.pth"
    with np.load(MM_PLAIN) as stored:
        weights = {key[8:]: torch.tensor(stored[key]).float() for key in stored if key.startswith("weights:")}
    tables = {
        "backbone": {"arch": {"num_heads": 4}, "img_size": 16, "patch_size": 4, "type": "VisionTransformer"},
        "head": {"type": "VisionTransformerClsHead"},
        "colours": {"mean": [127.5] * 3, "std": [127.5] * 3, "to_rgb": True},
        "resize": {"type": "ResizeEdge", "scale": 20, "backend": "pillow"},
        "crop": {"type": "CenterCrop", "crop_size": 16},
    }
    for name, keys in MM_TABLES.items():
        tables[name] |= data.draw(st.dictionaries(st.sampled_from(keys), json_values, max_size=2))
    model = {"backbone": tables["backbone"], "head": data.draw(st.just(tables["head"]) | json_values)}
    pipeline = data.draw(st.just([tables["resize"], tables["crop"]]) | json_values)
    text = f"model = {model!r}\ndata_preprocessor = {tables['colours']!r}\ntest_pipeline = {pipeline!r}\n"
    meta = {"cfg": data.draw(st.just(text) | json_values), "mmengine_version": "0.10.7", "dataset_meta": {}}
    torch.save(
        {"meta": meta | data.draw(st.dictionaries(st.just("CLASSES"), json_values)), "state_dict": weights}, path
    )
    try:
        loaded = vitrail.load(path, pickle=True)
    except vitrail.VitrailError as error:
        assert "damaged" not in str(error)  # noqa: PT017 - a model is what comes otherwise
        return
    assert loaded.config.dim == 16


def openclip_folder(folder: Path) -> Path:
    """A tower in a folder as OpenCLIP has it."""
    (folder / "open_clip_model.safetensors").write_bytes(GOOD["openclip"])
    vision = {"image_size": 16, "layers": 1, "width": 16, "head_width": 8, "patch_size": 4}
    settings = {
        "model_cfg": {"embed_dim": 8, "quick_gelu": True, "vision_cfg": vision},
        "preprocess_cfg": {"mean": [0.5] * 3, "std": [0.5] * 3, "interpolation": "bicubic", "resize_mode": "shortest"},
    }
    (folder / "open_clip_config.json").write_text(json.dumps(settings))
    return folder


@settings(max_examples=60)
@given(st.data())
def test_odd_settings_of_openclip_are_used_or_refused_in_a_sentence(tmp_path_factory, data) -> None:
    folder = openclip_folder(tmp_path_factory.mktemp("fuzz", numbered=True))
    path = folder / "open_clip_config.json"
    whole = json.loads(path.read_text())
    table = data.draw(
        st.sampled_from([whole, whole["model_cfg"], whole["model_cfg"]["vision_cfg"], whole["preprocess_cfg"]])
    )
    table |= data.draw(st.dictionaries(st.sampled_from(sorted(table)), json_values, min_size=1, max_size=2))
    path.write_text(json.dumps(whole))
    try:
        model = vitrail.load(folder)
    except vitrail.VitrailError:
        return
    assert model.config.dim == 16


def sharded_folder(folder: Path) -> Path:
    """A model in two files with an index beside them, as transformers writes large ones."""
    from safetensors.torch import load_file, save_file

    vitrail.save(made(SMALL), folder, to="huggingface")
    state = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    places = {name: f"model-0000{number % 2 + 1}-of-00002.safetensors" for number, name in enumerate(sorted(state))}
    for file in set(places.values()):
        save_file({name: state[name] for name in state if places[name] == file}, folder / file)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": places}))
    return folder


@pytest.mark.filterwarnings("ignore:.*NaN or infinite weights")
@settings(max_examples=60)
@given(st.data())
def test_shards_and_their_index_are_used_or_refused_in_a_sentence(tmp_path_factory, data) -> None:
    folder = sharded_folder(tmp_path_factory.mktemp("fuzz", numbered=True) / "x")
    index = folder / "model.safetensors.index.json"
    table = json.loads(index.read_text())
    match data.draw(st.sampled_from(["bytes of the index", "places", "values", "bytes of a file", "a missing file"])):
        case "bytes of the index":
            index.write_bytes(mutated(index.read_bytes(), data.draw))
        case "places":
            files = [*set(table["weight_map"].values()), "../x.safetensors", "/etc/passwd", "", ".", "config.json"]
            names = st.sampled_from(sorted(table["weight_map"])) | st.text(max_size=5)
            table["weight_map"] |= data.draw(st.dictionaries(names, st.sampled_from(files), min_size=1, max_size=3))
            index.write_text(json.dumps(table))
        case "values":
            index.write_text(json.dumps(table | {"weight_map": data.draw(json_values)}))
        case "bytes of a file":
            file = sorted(folder.glob("model-*"))[data.draw(st.integers(0, 1))]
            file.write_bytes(mutated(file.read_bytes(), data.draw))
        case "a missing file":
            sorted(folder.glob("model-*"))[data.draw(st.integers(0, 1))].unlink()
    try:
        model = vitrail.load(folder)
    except vitrail.VitrailError:
        return
    assert model.config.dim == 16
