"""Settings of `vitrail.export` that are refused before anything is exported."""

from pathlib import Path

import pytest
import torch

import vitrail
from tests.tiny import perturbed, vit_config
from vitrail import ConfigError, InputError, Preprocessing

MODEL = perturbed(vit_config())


@pytest.mark.parametrize(
    ("name", "settings", "words"),
    [
        ("model.tflite", {}, "give a name that ends in .onnx or .xml or .pt2"),
        ("model.onnx", {"format": "pt2"}, "`format` is pt2, but .* ends in .onnx; end it in .pt2"),
        ("model.onnx", {"opset": 9}, "`opset` is 9, but graphs can be written with 18 to"),
        ("model.onnx", {"int8": True}, "`int8` needs images to `calibrate` with"),
        ("model.onnx", {"labels": ["one"]}, "1 "),
    ],
)
def test_a_setting_that_cannot_be_is_refused_in_one_sentence(name, settings, words, tmp_path: Path) -> None:
    with pytest.raises((ConfigError, InputError), match=words):
        vitrail.export(MODEL, tmp_path / name, **settings)
    assert not list(tmp_path.iterdir())


def test_preprocessing_that_a_graph_cannot_repeat_is_refused_by_name(tmp_path: Path) -> None:
    how = Preprocessing(image_size=(12, 16), interpolation="lanczos", antialias=True)
    vitrail.save(MODEL, tmp_path / "model.safetensors", preprocessing=how)
    with pytest.raises(ConfigError, match="'lanczos' with antialias"):
        vitrail.export(tmp_path / "model.safetensors", tmp_path / "model.onnx")


def test_a_file_of_another_kind_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(b"of another tool")
    with pytest.raises(InputError, match="is not an exported model, so it is not replaced"):
        vitrail.export(MODEL, tmp_path / "model.onnx")


@pytest.mark.parametrize("name", ["model.onnx", "model.xml", "model.bin", "model.pt2"])
def test_no_file_of_another_kind_is_replaced_nor_weights_beside_it(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"precious")
    out = tmp_path / name.replace(".bin", ".xml")
    with pytest.raises(InputError, match=r"exists and is not (an|the weights of an) exported model"):
        vitrail.export(MODEL, out)
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"precious"]


def test_weights_never_take_the_place_of_the_model_that_is_read(tmp_path: Path) -> None:
    torch.save(MODEL.state_dict(), tmp_path / "model.bin")
    before = (tmp_path / "model.bin").read_bytes()
    with pytest.raises(InputError, match=r"model\.bin is read by this command, so it cannot also be written"):
        vitrail.export(tmp_path / "model.bin", tmp_path / "model.xml", force=True, pickle=True)
    assert (tmp_path / "model.bin").read_bytes() == before


@pytest.mark.parametrize("setting", ["labels", "calibrate"])
def test_nor_that_of_another_file_that_is_read(tmp_path: Path, setting: str) -> None:
    (tmp_path / "model.bin").write_text("ant\nbee\n")
    with pytest.raises(InputError, match=r"model\.bin is read by this command, so it cannot also be written"):
        vitrail.export(MODEL, tmp_path / "model.xml", force=True, **{setting: tmp_path / "model.bin"})


def test_nor_that_of_a_file_in_the_folder_that_is_read(tmp_path: Path) -> None:
    torch.save(MODEL.state_dict(), tmp_path / "pytorch_model.bin")
    with pytest.raises(InputError, match=r"pytorch_model\.bin is read by this command"):
        vitrail.export(tmp_path, tmp_path / "pytorch_model.xml", force=True, pickle=True)
