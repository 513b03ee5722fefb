"""The reader of torch's files against torch's own, and what it never does."""

import argparse
import collections
import datetime
import io
import os
import pathlib
import pickle
import pickletools
import zipfile

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from vitrail import CheckpointError
from vitrail.checkpoint.pickled import open_pickled, read_torch
from vitrail.checkpoint.plain import Opaque, is_known
from vitrail.checkpoint.program import NameRefused, run

TYPES = (torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.uint8, torch.bool)
OLD_AND_NEW = pytest.mark.parametrize("zipped", [True, False], ids=["zip", "older"])


def saved(value, path, *, zipped: bool = True):
    torch.save(value, path, _use_new_zipfile_serialization=zipped)
    return path


@OLD_AND_NEW
@pytest.mark.parametrize("resident", [True, False])
def test_tensors_are_those_that_torch_reads(zipped, resident, tmp_path) -> None:
    generator = torch.Generator().manual_seed(0)
    base = torch.randn(6, 8, generator=generator)
    weights = {str(dtype): (base * 10).to(dtype) for dtype in TYPES}
    weights |= {"a view": base[2:4, 1::3], "turned": base.T, "one value": torch.tensor(3.5), "none": torch.zeros(0, 4)}
    weights |= {"a parameter": nn.Parameter(base), "shared": base[1]}
    path = saved(weights, tmp_path / "x.pth", zipped=zipped)
    source, wanted = open_pickled(path, resident=resident).source, torch.load(path, weights_only=True)
    assert list(source) == list(wanted)
    for name, tensor in wanted.items():
        assert source.specs[name] == (tuple(tensor.shape), tensor.dtype)
        assert torch.equal(source[name], tensor.detach()), name


@OLD_AND_NEW
def test_plain_data_come_back_as_plain_data(zipped, tmp_path) -> None:
    arguments = argparse.Namespace(
        lr=0.1, names=["a", "b"], folder=pathlib.PurePosixPath("a/b"), device=torch.device("cpu")
    )
    value = {
        "args": arguments,
        "best": np.float64(0.25),
        "count": np.int64(7),
        "yes": np.bool_(True),
        "half": np.float32(0.5),
        "array": np.arange(3),
        "counts": collections.Counter("aab"),
        "default": collections.defaultdict(list),
        "set": {1},
        "size": torch.Size([2, 3]),
        "when": datetime.date(2026, 1, 1),
        "numbers": (1, -(2**70), 1.5, None, True, b"x"),
        "nested": {"x": [{"y": (1, [2])}]},
    }
    data = read_torch(saved(value, tmp_path / "x.pth", zipped=zipped)).data
    assert data["args"]["lr"] == 0.1
    assert data["args"]["names"] == ["a", "b"]
    assert data["args"]["folder"] == "a/b"
    assert (data["best"], data["count"], data["yes"], data["half"]) == (0.25, 7, True, 0.5)
    assert data["counts"] == {"a": 2, "b": 1}
    assert (data["default"], data["set"], data["size"]) == ({}, [1], (2, 3))
    assert data["numbers"] == value["numbers"]
    assert data["nested"] == value["nested"]


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_every_protocol_is_followed(protocol) -> None:
    value = {"a": [1, 2.5, "text", b"bytes", None, True, {"b": (1, 2, 3, 4)}], "long": "x" * 300, "big": 2**100}
    assert run(pickle.dumps(value, protocol=protocol))[0] == value


class Call:
    """Pickles as a call of any function with any arguments."""

    def __init__(self, function, *arguments) -> None:
        self.call = (function, arguments)

    def __reduce__(self):
        return self.call


@OLD_AND_NEW
@pytest.mark.parametrize(
    "function",
    [os.system, os.mkdir, eval, exec, __import__, getattr, open, print, io.open, torch.load, np.load, torch.hub.load],
    ids=lambda function: f"{function.__module__}.{function.__name__}",
)
def test_a_name_outside_the_table_ends_the_reading(function, zipped, tmp_path) -> None:
    trap = tmp_path / "sprung"
    path = saved({"model": {"a": torch.zeros(2)}, "x": Call(function, str(trap))}, tmp_path / "x.pth", zipped=zipped)
    with pytest.raises(CheckpointError, match=r"it names .*, but only tensors and plain containers are read\. Nothing"):
        open_pickled(path)
    assert not trap.exists()


def test_names_cannot_reach_into_known_ones() -> None:
    """A known class is no door to its attributes, nor a known module to its functions."""
    for name in (
        "torch._utils._rebuild_tensor_v2.__globals__",
        "collections.OrderedDict.__class__",
        "torch.nn.Linear",
        "torch.load",
        "torch.storage._load_from_bytes",
        "builtins.eval",
        "builtins.getattr",
        "numpy.load",
        "argparse.FileType",
        "posix.system",
        "",
    ):
        assert not is_known(name), name
    with pytest.raises(NameRefused):
        run(b"\x80\x04\x8c\x08builtins\x8c\x04eval\x93.")


def test_a_method_of_a_record_is_left_closed_and_no_other_attribute_is_reached() -> None:
    """mmengine's records of a run hold methods of their own class."""
    method = b"cbuiltins\ngetattr\n(c%s\nVmin\ntR"
    record = b"\x80\x02" + method % b"mmengine.logging.history_buffer\nHistoryBuffer"
    assert run(record + b".")[0] == Opaque("a method")
    with pytest.raises(TypeError):
        run(record + b")R.")  # a call of it
    for owner in (b"torch\nSize", b"collections\nOrderedDict", b"argparse\nNamespace", b"builtins\ngetattr"):
        with pytest.raises(NameRefused):
            run(b"\x80\x02" + method % owner + b".")
    with pytest.raises(NameRefused):
        run(b"\x80\x02cbuiltins\ngetattr\n(Vtext\nVmin\ntR.")


def test_operations_that_reach_outside_are_not_followed() -> None:
    for program in (
        b"\x80\x02\x82\x01.",
        b"\x80\x02(cos\nsystem\nS'x'\no.",
        b"\x80\x02(ios\nsystem\n.",
        b"\x80\x05\x97.",
    ):
        with pytest.raises((ValueError, NameRefused)):
            run(program)


def test_a_small_program_cannot_cost_much() -> None:
    """Tuples that hold each other twice, a memo of a place far away, many marks: bounded by the program's length."""
    doubled = b"\x80\x02)" + b"2\x86" * 60 + b"}X\x01\x00\x00\x00a"
    value, _, _ = run(doubled + b"0.")
    assert value == {}
    far = b"\x80\x02]r\xff\xff\xff\x7f."
    assert run(far)[0] == []
    keyed = b"\x80\x02}" + b"(" + b")" + b"2\x86" * 60 + b"K\x01u."  # a tuple that would take 2^60 steps to hash
    assert run(keyed)[0] == {}
    assert run(b"\x80\x02" + b"(" * 20_000 + b"t" * 20_000 + b".")[0]


def test_a_compressed_member_is_unpacked(tmp_path) -> None:
    weights = {"a": torch.arange(1000.0)}
    source, path = saved(weights, tmp_path / "x.pth"), tmp_path / "y.pth"
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        for entry in old.infolist():
            new.writestr(entry.filename, old.read(entry))
    assert torch.equal(open_pickled(path).source["a"], weights["a"])


def rewritten(path, old: bytes, new: bytes):
    """Change the program of a zipped file."""
    with zipfile.ZipFile(path) as archive:
        members = {entry.filename: archive.read(entry) for entry in archive.infolist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data.replace(old, new) if name.endswith("data.pkl") else data)
    return path


def test_a_damaged_compressed_member_is_refused_when_it_is_read(tmp_path) -> None:
    source, path = saved({"weight": torch.arange(4000.0)}, tmp_path / "x.pth"), tmp_path / "y.pth"
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        for entry in old.infolist():
            new.writestr(entry.filename, old.read(entry))
        block = next(entry for entry in new.infolist() if entry.filename.endswith("data/0"))
    data = bytearray(path.read_bytes())
    data[block.header_offset + 300 : block.header_offset + 310] = bytes(10)
    path.write_bytes(data)
    weights = open_pickled(path).source
    with pytest.raises(CheckpointError, match=r"its numbers cannot be unpacked: .*; get the file again"):
        weights["weight"]


def test_a_tensor_that_reaches_beyond_its_numbers_is_refused(tmp_path) -> None:
    saved({"a": torch.zeros(3, 7)}, tmp_path / "x.pth")
    for old, new, message in (
        (b"K\x03K\x07\x86", b"K\x07K\x07\x86", "do not have their own numbers"),
        (b"K\x07K\x01\x86", b"K\x09K\x01\x86", "cut short"),
        (b"K\x00K\x03", b"K\x05K\x03", "cut short"),
    ):
        with pytest.raises(CheckpointError, match=message):
            open_pickled(rewritten(saved({"a": torch.zeros(3, 7)}, tmp_path / "x.pth"), old, new))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (torch.eye(3).to_sparse(), "do not have their own numbers: a"),
        (torch.zeros(1, 3).expand(10**9, 3), "do not have their own numbers: a"),
    ],
)
def test_tensors_without_their_own_numbers_are_refused(value, message, tmp_path) -> None:
    with pytest.raises(CheckpointError, match=message):
        open_pickled(saved({"a": value, "b": torch.zeros(2)}, tmp_path / "x.pth"))


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
def test_a_torchscript_program_is_called_that(tmp_path) -> None:
    class Doubling(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return 2 * x

    torch.jit.save(torch.jit.trace(Doubling(), torch.zeros(1)), tmp_path / "x.pt")
    with pytest.raises(CheckpointError, match=r"is a TorchScript program, as OpenAI's CLIP is published"):
        open_pickled(tmp_path / "x.pt")


def test_big_end_first_is_refused(tmp_path) -> None:
    path = saved({"a": torch.zeros(2)}, tmp_path / "x.pth")
    with zipfile.ZipFile(path) as archive:
        members = {entry.filename: archive.read(entry) for entry in archive.infolist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, b"big" if name.endswith("byteorder") else data)
    with pytest.raises(CheckpointError, match="big end first"):
        open_pickled(path)


OPERATIONS = [operation.code.encode("latin-1") for operation in pickletools.opcodes]


@settings(max_examples=200)
@given(st.lists(st.sampled_from(OPERATIONS) | st.binary(max_size=6), max_size=40))
def test_any_list_of_operations_ends_in_a_sentence(tmp_path_factory, parts) -> None:
    path = tmp_path_factory.mktemp("fuzz", numbered=True) / "x.pth"
    path.write_bytes(b"\x80\x02" + b"".join(parts) + b".")
    with pytest.raises(CheckpointError):
        open_pickled(path)
