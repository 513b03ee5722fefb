"""What is thrown at a loader: every time one clear message, nothing run, memory bounded."""

import io
import json
import os
import pickle
import struct
import tracemalloc
import zipfile

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

import vitrail
from tests.checkpoint.making import JAX, made, recorded
from tests.tiny import vit_config
from vitrail import CheckpointError
from vitrail.checkpoint.archive import open_archive

SMALL = vit_config(dim=16, depth=1, num_heads=2, mlp_dim=16, image_size=(16, 16))


def container(header: dict | bytes, payload: bytes = b"") -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + payload


def refused(path, data: bytes | None = None, **settings) -> str:
    """Assert that a file is refused, by a message that names it, and return the message."""
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(CheckpointError) as error:
        vitrail.load(path, **settings)
    assert str(path) in str(error.value)
    return str(error.value)


def tensor(shape, begin, end, dtype="F32") -> dict:
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


@pytest.mark.parametrize(
    ("header", "payload", "message"),
    [
        (b"", b"", "cannot be read"),
        (b"[1, 2]", b"", "not a table"),
        (b'{"a": 1, "a": 2}', b"", "has 'a' more than once"),
        (b"{" * 50_000, b"", "cannot be read"),
        (b"\xff\xfe{}", b"", "cannot be read"),
        ({"a": 3}, b"", "does not give 'a' a dtype"),
        ({"a": tensor([2], 0, 8) | {"extra": 1}}, bytes(8), "and nothing else"),
        ({"a": tensor([2], 0, 8, "F4")}, bytes(8), "type 'F4'"),
        ({"a": tensor([2], 0, 8, ["F32"])}, bytes(8), "has the type"),
        ({"a": tensor([-2], 0, 8)}, bytes(8), "not a whole number"),
        ({"a": tensor([2.0], 0, 8)}, bytes(8), "not a whole number"),
        ({"a": tensor([True], 0, 4)}, bytes(4), "not a whole number"),
        ({"a": tensor([2**62, 4], 0, 8)}, bytes(8), "does not fill its place"),
        ({"a": tensor([3], 0, 8)}, bytes(8), "does not fill its place"),
        ({"a": tensor([1] * 9, 0, 4)}, bytes(4), "does not fill its place"),
        ({"a": tensor([2], 0, 8), "b": tensor([2], 4, 12)}, bytes(12), "'b' begins at byte"),
        ({"a": tensor([2], 0, 8), "b": tensor([2], 0, 8)}, bytes(8), "begins at byte"),
        ({"a": tensor([2], 0, 8), "b": tensor([2], 12, 20)}, bytes(20), "'b' begins at byte"),
        ({"a": tensor([2], 0, 8)}, bytes(12), "but the file has"),
        ({"a": tensor([2], 0, 8)}, bytes(4), "but the file has"),
        ({"__metadata__": {"a": 1}}, b"", "metadata is not text"),
        ({"__metadata__": []}, b"", "metadata is not text"),
        ({}, b"", "no tensors at all"),
    ],
)
def test_a_broken_safetensors_file_is_refused_with_the_reason(header, payload, message, tmp_path) -> None:
    assert message in refused(tmp_path / "x.safetensors", container(header, payload))


@pytest.mark.parametrize("claimed", [2**24 + 1, 2**30, 2**63, 2**64 - 1])
def test_a_huge_header_is_refused_before_it_is_read(claimed, tmp_path) -> None:
    path = tmp_path / "x.safetensors"
    path.write_bytes(struct.pack("<Q", claimed))
    os.truncate(path, 2**30 + 100)  # sparse: it takes no room on the disk
    tracemalloc.start()
    words = "more than the 16,777,216 that are read" if claimed <= 2**30 else "but only 1,073,741,916 follow"
    assert words in refused(path)
    assert tracemalloc.get_traced_memory()[1] < 2**20
    tracemalloc.stop()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "is empty"),
        (b"PK", "damaged or no .npz"),
        (b"PK\x03\x04" + bytes(60), "damaged or no .npz"),
        (b"<!DOCTYPE html><html><body>Sign in</body></html>", "is a web page, not weights"),
        (b"\n  <html>", "is a web page, not weights"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:1\n", "Git LFS pointer"),
        (b"\x93NUMPY\x01\x00", "is a single NumPy array"),
        (b"\x89HDF\r\n\x1a\n" + bytes(60), "is an HDF5 file, as Keras and TensorFlow write"),
        (b"GGUF\x03\x00\x00\x00" + bytes(60), "is a GGUF file, whose weights are quantised"),
        (b"\x08\x08\x12\x07pytorch\x1a\x052.0.1", "is an ONNX model, which is a graph"),
        (b"\x81\xa6params\x82\xa4head", "is a msgpack file, as Flax writes"),
        (b'{"metadata": {}, "weight_map": {}}', "is an index of weights in several files; give the folder"),
        (b'{"model_type": "vit"}', "is JSON, as the settings beside weights are; give the folder"),
        (b"\x1f\x8b\x08\x00" + bytes(9), "is compressed by gzip; unpack it first"),
        (b"<?xml version='1.0'?><net name='x'>", "is XML, as of an OpenVINO model"),
        (b"\x1c\x00\x00\x00TFL3" + bytes(9), "is a TensorFlow Lite model"),
        (b"\xff\xd8\xff\xe0" + bytes(9), "is an image, not a model"),
        (bytes(100), "cannot be read"),
        (b"hello", "5 bytes"),
    ],
)
@pytest.mark.parametrize("name", ["x.npz", "x.safetensors", "x"])
def test_what_is_no_file_of_weights_is_called_by_what_it_is(data, message, name, tmp_path) -> None:
    assert message in refused(tmp_path / name, data)


def test_a_missing_file_and_an_empty_folder_are_said(tmp_path) -> None:
    assert "there is no file or folder" in refused(tmp_path / "nowhere.npz")
    assert "has no model.safetensors or pytorch_model.bin" in refused(tmp_path)
    (tmp_path / "model.safetensors.index.json").write_text("{}")
    assert "has no weight_map" in refused(tmp_path)
    for places, message in (
        ({"a": "../x.safetensors"}, "names the file '../x.safetensors', which the folder does not hold"),
        ({"a": "gone.safetensors"}, "names the file 'gone.safetensors', which the folder does not hold"),
        ({"a": 3}, "has no weight_map"),
    ):
        (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": places}))
        assert message in refused(tmp_path)


def test_a_header_whose_length_looks_like_json_is_read(tmp_path) -> None:
    """A length of 123 bytes is a brace in the first byte."""
    header = json.dumps({"a": tensor([2], 0, 8)}).encode().ljust(ord("{"))
    assert "it holds a." in refused(tmp_path / "x.safetensors", container(header, bytes(8)))


def test_a_name_of_a_hub_is_answered_with_how_to_give_it() -> None:
    with pytest.raises(CheckpointError, match=r"if nobody/vit-x is a repository of Hugging Face, give hf:nobody/vit-x"):
        vitrail.load("nobody/vit-x")


class Trap:
    """What a malicious pickle does when it is loaded."""

    def __init__(self, path) -> None:
        self.path = path

    def __reduce__(self):
        return (os.mkdir, (str(self.path),))


@pytest.mark.parametrize("allowed", [False, True])
@pytest.mark.parametrize("protocol", [2, 4])
@pytest.mark.parametrize("way", ["torch", "torch, old", "bare"])
def test_a_malicious_pickle_is_never_run(way, protocol, allowed, tmp_path) -> None:
    trap = tmp_path / "sprung"
    value = {"model": torch.zeros(1), "trap": Trap(trap)}
    if way == "bare":
        (tmp_path / "x.pth").write_bytes(pickle.dumps(value, protocol=protocol))
    else:
        torch.save(value, tmp_path / "x.pth", pickle_protocol=protocol, _use_new_zipfile_serialization=way == "torch")
    message = refused(tmp_path / "x.pth", pickle=allowed)
    assert not trap.exists()
    assert "weights_only" not in message
    assert "safe_globals" not in message
    named = "it names posix.mkdir, but only tensors and plain containers are read. Nothing in it was run"
    assert (named if allowed else "import it once, on purpose") in message


def test_a_torch_file_is_opened_only_on_purpose_whatever_its_name(tmp_path) -> None:
    weights, _, _ = recorded("timm_token")
    for name in ("x.pth", "x.bin", "x.npz", "x.safetensors"):
        torch.save(weights, tmp_path / name)
        assert "vitrail convert" in refused(tmp_path / name, num_heads=3)
        assert vitrail.load(tmp_path / name, pickle=True, num_heads=3, image_size=(16, 24)).config.dim == 24


@pytest.mark.parametrize("value", [[1, 2], {"epoch": 3}, {"model": {"epoch": 3}}, torch.zeros(3)])
def test_a_torch_file_without_weights_is_said(value, tmp_path) -> None:
    torch.save(value, tmp_path / "x.pth")
    assert "without tensors by name" in refused(tmp_path / "x.pth", pickle=True)


def test_a_torch_file_cut_short_is_refused(tmp_path) -> None:
    torch.save(recorded("timm_token")[0], tmp_path / "x.pth")
    data = (tmp_path / "x.pth").read_bytes()
    for length in (10, 100, len(data) // 2, len(data) - 1):
        refused(tmp_path / "x.pth", data[:length], pickle=True)


def test_pickled_arrays_in_an_npz_are_never_read(tmp_path) -> None:
    trap = tmp_path / "sprung"
    with np.load(JAX / "vit_token.params.npz") as stored:
        values = dict(stored)
    np.savez(tmp_path / "x.npz", **values | {"head/bias": np.array([Trap(trap)], dtype=object)})
    assert "pickled Python objects in head/bias.npy" in refused(tmp_path / "x.npz")
    assert not trap.exists()


def npy(shape, kind="<f4", body: bytes = b"") -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": kind, "fortran_order": False, "shape": shape})
    return stream.getvalue() + body


def zipped(path, members: dict[str, bytes], kind=zipfile.ZIP_STORED) -> None:
    with zipfile.ZipFile(path, "w", kind) as archive:
        for name, data in members.items():
            archive.writestr(name, data)


def test_a_zip_bomb_is_refused_before_it_is_unpacked(tmp_path) -> None:
    path = tmp_path / "x.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("embedding/kernel.npy", "w") as file:
        file.write(npy((2**27,)))
        for _ in range(2**9):
            file.write(bytes(2**20))
    assert path.stat().st_size < 2**20
    tracemalloc.start()
    assert "would unpack to 512.00 MiB" in refused(path)
    assert tracemalloc.get_traced_memory()[1] < 2**21
    tracemalloc.stop()


def test_an_array_larger_than_its_entry_is_refused_before_it_is_made(tmp_path) -> None:
    zipped(tmp_path / "x.npz", {"embedding/kernel.npy": npy((2**40,), body=bytes(16))})
    assert "which its shape (1099511627776,) does not fill" in refused(tmp_path / "x.npz")


def test_a_small_file_with_a_head_of_zeros_is_no_bomb(tmp_path) -> None:
    with np.load(JAX / "vit_token.params.npz") as stored:
        values = dict(stored)
    values |= {"head/kernel": np.zeros((64, 21_843), np.float32), "head/bias": np.zeros(21_843, np.float32)}
    np.savez_compressed(tmp_path / "x.npz", **values)
    assert vitrail.load(tmp_path / "x.npz").config.num_classes == 21_843


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"a.txt": b"text"}, "not of NumPy arrays: it holds a.txt"),
        ({"a.npy": b"no array"}, "damaged or no .npz"),
        ({"a.npy": npy((2,), body=bytes(8))}, "not of a layout that is known"),
        ({}, "no tensors at all"),
        ({"a.npy": npy((2,), "<f4", bytes(7))}, "does not fill"),
        ({"a.npy": npy((-2,), "<f4", bytes(8))}, "does not fill"),
        ({"a.npy": b"\x93NUMPY\x09\x00" + bytes(20)}, "damaged or no .npz"),
        ({"a.npy": b"\x93NUMPY\x01\x00\x76\x00" + b"__import__('os').abort()".ljust(118)}, "damaged or no .npz"),
        ({"a.npy": b"\x93NUMPY\x01\x00\x76\x00" + b"{'descr': (".ljust(118)}, "the header of a.npy cannot be read"),
    ],
)
def test_a_zip_that_is_no_npz_is_refused(members, message, tmp_path) -> None:
    zipped(tmp_path / "x.npz", members)
    assert message in refused(tmp_path / "x.npz")


def test_whole_numbers_are_no_weights(tmp_path) -> None:
    with np.load(JAX / "vit_token.params.npz") as stored:
        values = dict(stored)
    np.savez(tmp_path / "x.npz", **values | {"head/bias": np.arange(10)})
    assert "holds others: head/bias" in refused(tmp_path / "x.npz")


def test_an_array_of_letters_is_refused_when_it_is_read(tmp_path) -> None:
    np.savez(tmp_path / "x.npz", letters=np.array([b"ab", b"cd"]))
    with pytest.raises(CheckpointError, match=r"'letters' of the type .S2, but weights are numbers"):
        open_archive(tmp_path / "x.npz")["letters"]


def test_an_npz_with_a_wrong_checksum_is_refused(tmp_path) -> None:
    data = bytearray((JAX / "vit_token.params.npz").read_bytes())
    data[len(data) // 2] ^= 1
    assert "damaged" in refused(tmp_path / "x.npz", bytes(data))


def test_every_difference_is_listed_at_once(tmp_path) -> None:
    weights, _, _ = recorded("timm_token")
    del weights["blocks.1.norm1.bias"], weights["norm.bias"]
    weights["blocks.0.attn.extra"] = torch.zeros(3)
    weights["blocks.0.mlp.fc2.weight"] = torch.zeros(24, 47)
    weights["head.bias"] = torch.zeros(6)
    save_file(weights, tmp_path / "x.safetensors")
    message = refused(tmp_path / "x.safetensors", num_heads=3, image_size=(16, 24), gelu="erf")
    for part in (
        "missing (2):",
        "blocks.1.norm1.bias 24",
        "norm.bias 24",
        "unexpected (1):",
        "blocks.0.attn.extra 3",
        "misshapen (2):",
        "blocks.0.mlp.fc2.weight is 24x47, but 24x48 is needed",
        "head.bias is 6, but 5 is needed",
    ):
        assert part in message


def test_a_vit_pytorch_file_is_refused_with_the_reason(tmp_path) -> None:
    names = ["cls_token", "pos_embedding", "to_patch_embedding.1.weight", "transformer.layers.0.0.to_qkv.weight"]
    save_file({name: torch.zeros(2) for name in names}, tmp_path / "x.safetensors")
    message = refused(tmp_path / "x.safetensors")
    assert "is a vit-pytorch model, which is not the paper's" in message
    assert "no bias in q, k and v" in message


def test_our_weights_without_our_header_are_told_apart(tmp_path) -> None:
    state = {name: value.clone() for name, value in made(SMALL).state_dict().items()}
    save_file(state, tmp_path / "x.safetensors")
    assert "has the tensor names of Vitrail, but not the header" in refused(tmp_path / "x.safetensors")


def test_an_unknown_layout_is_shown_by_its_names(tmp_path) -> None:
    save_file({"conv1.weight": torch.zeros(2)}, tmp_path / "x.safetensors")
    assert "it holds conv1.weight" in refused(tmp_path / "x.safetensors")


@pytest.mark.parametrize(
    ("name", "missing"),
    [("vit_token", "embedding/kernel"), ("vit_token", "Transformer/encoderblock_0/MlpBlock_0/Dense_0/kernel")],
)
def test_a_file_without_the_tensors_that_tell_its_sizes_is_refused(name, missing, tmp_path) -> None:
    with np.load(JAX / f"{name}.params.npz") as stored:
        values = {key: stored[key] for key in stored if key != missing}
    np.savez(tmp_path / "x.npz", **values)
    assert f"has no tensor '{missing}'" in refused(tmp_path / "x.npz")


def test_what_we_noted_in_a_foreign_header_is_not_trusted(tmp_path) -> None:
    """A header of another model is left aside, and said; one that cannot be read as well."""
    model = made(vit_config(image_size=(16, 16), gelu="erf"))
    path = vitrail.save(model, tmp_path / "x.safetensors", to="timm")
    data = path.read_bytes()
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8 : 8 + length])
    origin = json.loads(header["__metadata__"]["vitrail.origin"])
    origin["config"]["mlp_dim"] = 128
    for text, note in ((json.dumps(origin), "of another model"), ("{", "cannot be read"), ("[]", "cannot be read")):
        header["__metadata__"]["vitrail.origin"] = text
        path.write_bytes(container(header, data[8 + length :]))
        assert note in vitrail.load(path, num_heads=4).info.notes[-1]


def test_a_json_file_that_is_none_is_refused(tmp_path) -> None:
    vitrail.save(made(SMALL), tmp_path / "x", to="huggingface")
    for text, message in (("[1]", "a table of settings is needed"), ("{", "cannot be read as JSON")):
        (tmp_path / "x" / "config.json").write_text(text)
        with pytest.raises(CheckpointError, match=message):
            vitrail.load(tmp_path / "x")


def test_a_tensor_that_repeats_its_values_to_look_large_is_refused(tmp_path) -> None:
    weights, _, _ = recorded("timm_token")
    torch.save(weights | {"head.weight": torch.zeros(1, 24).expand(10**12, 24)}, tmp_path / "x.pth")
    message = refused(tmp_path / "x.pth", pickle=True, num_heads=3, image_size=(16, 24))
    assert "do not have their own numbers: head.weight" in message


@pytest.mark.parametrize("to", ["vitrail", "google", "timm"])
def test_writing_into_no_folder_or_over_one_is_said(to, tmp_path) -> None:
    suffix = ".npz" if to == "google" else ".safetensors"
    if to != "timm":
        with pytest.raises(vitrail.InputError, match="there is no folder"):
            vitrail.save(made(SMALL), tmp_path / "none" / f"x{suffix}", to=to)
    (tmp_path / f"x{suffix}").mkdir()
    with pytest.raises(vitrail.InputError, match="is a folder"):
        vitrail.save(made(SMALL), tmp_path / f"x{suffix}", to=to)
