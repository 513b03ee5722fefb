import hashlib
import json
import os
import threading
from pathlib import Path

import pytest

from vitrail.base.digest import LARGEST_HEADER, begin, begun, own_digest


def stored(path: Path, *, digits: str = "7" * 64, payload: bytes = b"numbers") -> bytes:
    header = json.dumps({"__metadata__": {"vitrail.sha256": digits}}, separators=(",", ":")).encode()
    path.write_bytes(len(header).to_bytes(8, "little") + header + payload)
    return header


def test_the_digest_is_that_of_the_file_with_zeros_in_its_place(tmp_path: Path) -> None:
    path = tmp_path / "x"
    header = stored(path)
    expected = hashlib.sha256(path.read_bytes().replace(b"7" * 64, b"0" * 64)).hexdigest()
    assert own_digest(header, memoryview(path.read_bytes())) == expected
    begin(path)
    assert begun(path) == expected
    assert begun(path) is None  # asked for once


def test_a_file_without_a_digest_is_hashed_as_it_is() -> None:
    assert own_digest(b"{}", memoryview(b"some bytes")) == hashlib.sha256(b"some bytes").hexdigest()


def test_a_file_that_changed_meanwhile_has_no_digest(tmp_path: Path) -> None:
    path = tmp_path / "x"
    stored(path)
    begin(path)
    for thread in threading.enumerate():
        if thread.name == "vitrail-digest":
            thread.join()
    os.utime(path, ns=(1, 1))
    assert begun(path) is None


@pytest.mark.parametrize(
    "content", [b"", b"short", (LARGEST_HEADER + 1).to_bytes(8, "little"), b"\x05" + bytes(7) + b"{}   "]
)
def test_what_carries_no_digest_is_left_alone(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(content)
    begin(path)
    assert begun(path) is None


def test_what_is_no_plain_file_is_left_alone(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "nowhere", tmp_path / "pipe"):
        begin(path)
        assert begun(path) is None
