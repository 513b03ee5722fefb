import os
from pathlib import Path

import pytest

from vitrail import CheckpointError, Preprocessing
from vitrail.runtime.card import Card, read_card
from vitrail.runtime.choice import EngineChoice
from vitrail.runtime.digest import NO_DIGEST, check_digest, signed
from vitrail.runtime.exported import open_exported
from vitrail.runtime.onnx_properties import read_properties

CARD = Card(
    entry="image",
    preprocessing=Preprocessing(image_size=(12, 16)),
    num_classes=2,
    feature_width=3,
    outputs=("logits",),
    labels=("été", "冬"),
    provenance={"data": "photos"},
)


def test_a_card_comes_back_as_it_was_written() -> None:
    assert read_card(CARD.text(), Path("model.onnx")) == CARD


@pytest.mark.parametrize("text", ["", "{", "[]", '{"entry": "image"}', '{"entry": 3}', "[" * 100_000])
def test_a_card_that_is_none_is_refused_in_one_sentence(text) -> None:
    with pytest.raises(CheckpointError, match=r"model\.onnx does not describe itself"):
        read_card(text, Path("model.onnx"))


def test_every_flipped_bit_is_found(tmp_path: Path) -> None:
    graph, weights = signed([b"graph " + NO_DIGEST.encode() + b" end", b"weights"])
    first, second = tmp_path / "a.xml", tmp_path / "a.bin"
    second.write_bytes(weights)
    first.write_bytes(graph)
    assert len(check_digest([first, second]) or "") == 64
    for place in (0, 3, len(graph) - 2):
        broken = bytearray(graph)
        broken[place] ^= 1
        first.write_bytes(broken)
        with pytest.raises(CheckpointError, match="damaged"):
            check_digest([first, second])
    first.write_bytes(graph)
    second.write_bytes(b"Weights")
    with pytest.raises(CheckpointError, match="damaged"):
        check_digest([first, second])


def test_a_file_without_a_digest_has_none(tmp_path: Path) -> None:
    (tmp_path / "a.onnx").write_bytes(b"of another tool")
    assert check_digest([tmp_path / "a.onnx"]) is None


def test_an_empty_file_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "a.xml").write_bytes(b"<net/>")
    (tmp_path / "a.bin").touch()
    (tmp_path / "a.onnx").touch()
    with pytest.raises(CheckpointError, match=r"a\.onnx is empty"):
        check_digest([tmp_path / "a.onnx"])
    with pytest.raises(CheckpointError, match=r"a\.bin is empty"):
        check_digest([tmp_path / "a.xml", tmp_path / "a.bin"])


def test_a_pipe_is_not_an_exported_model(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.onnx")
    with pytest.raises(CheckpointError, match="is a pipe, but a regular file is needed"):
        open_exported(tmp_path / "a.onnx", EngineChoice(), threads=1)


def test_properties_are_read_without_a_runtime(tmp_path: Path) -> None:
    def field(number: int, content: bytes) -> bytes:
        assert len(content) < 128
        return bytes([number << 3 | 2, len(content)]) + content

    entry = field(1, b"vitrail") + field(2, "é".encode())
    (tmp_path / "a.onnx").write_bytes(bytes([1 << 3, 8]) + field(7, b"graph") + field(14, entry))
    assert read_properties(tmp_path / "a.onnx") == {"vitrail": "é"}


@pytest.mark.parametrize("content", [b"", b"\xff" * 30, b"hello, I am a text", bytes([7 << 3 | 2, 100]) + b"short"])
def test_a_file_of_another_kind_is_not_an_onnx_file(content, tmp_path: Path) -> None:
    (tmp_path / "a.onnx").write_bytes(content)
    with pytest.raises(CheckpointError, match="not an ONNX file, or is cut short"):
        read_properties(tmp_path / "a.onnx")
