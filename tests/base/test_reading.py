"""Only regular files of bounded size are read."""

import os
import socket
from pathlib import Path

import pytest

from vitrail import InputError
from vitrail.base.limits import TEXT_BYTES
from vitrail.base.reading import lines, open_regular, parse_json, read_bytes, read_json, read_text


def test_a_pipe_a_device_a_folder_and_a_socket_are_refused_at_once(tmp_path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "socket"))
        for path, word in (
            (tmp_path / "pipe", "is a pipe"),
            (Path("/dev/zero"), "is a device"),
            (tmp_path, "is a folder"),
            (tmp_path / "socket", "cannot be read"),  # the system itself refuses to open it
            (tmp_path / "nothing", "cannot be read: No such file"),
            (Path("a\0b"), "cannot be read"),
        ):
            with pytest.raises(InputError, match=word):
                open_regular(path)


def test_a_file_above_the_bound_is_refused_before_it_is_read(tmp_path, monkeypatch) -> None:
    with (tmp_path / "large").open("wb") as file:
        file.truncate(2**40)  # takes no room on the disk, and would take all memory
    with pytest.raises(InputError, match="VITRAIL_LIMIT_TEXT_BYTES"):
        read_bytes(tmp_path / "large")
    (tmp_path / "small").write_bytes(b"12345")
    assert read_bytes(tmp_path / "small", TEXT_BYTES) == b"12345"
    monkeypatch.setenv("VITRAIL_LIMIT_TEXT_BYTES", "4")
    with pytest.raises(InputError, match="has 5 bytes"):
        read_bytes(tmp_path / "small")


def test_text_is_utf8_with_or_without_a_mark(tmp_path) -> None:
    (tmp_path / "marked").write_bytes(b"\xef\xbb\xbfcaf\xc3\xa9")
    assert read_text(tmp_path / "marked") == "café"
    (tmp_path / "latin").write_bytes(b"caf\xe9")
    with pytest.raises(InputError, match=r"UTF-8.*0xe9"):
        read_text(tmp_path / "latin")
    assert read_text(tmp_path / "latin", errors="replace") == "caf\ufffd"


@pytest.mark.parametrize(
    "text", ["{", "[" * 100_000, "1" * 5000, '{"a": 1, "b": 2, "a": 3}', '{"x": {"a": 1, "a": 2}}']
)
def test_what_is_not_json_is_refused_in_a_sentence(tmp_path, text) -> None:
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(InputError, match=r"x\.json cannot be read as JSON"):
        read_json(tmp_path / "x.json")
    with pytest.raises(InputError, match="the header cannot be read as JSON"):
        parse_json(text, "the header")


def test_a_line_without_end_is_refused(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("VITRAIL_LIMIT_LINE_BYTES", "5")
    path = tmp_path / "list"
    path.write_bytes(b"12345\r\n12\n\n12345")
    with path.open("rb") as file:
        assert list(lines(file, path)) == [b"12345\r\n", b"12\n", b"\n", b"12345"]
    path.write_bytes(b"1\n123456")
    with path.open("rb") as file, pytest.raises(InputError, match="VITRAIL_LIMIT_LINE_BYTES"):
        list(lines(file, path))
