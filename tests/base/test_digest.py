import hashlib
import json

from vitrail.base.digest import own_digest


def test_the_digest_is_that_of_the_file_with_zeros_in_its_place() -> None:
    header = json.dumps({"__metadata__": {"vitrail.sha256": "7" * 64}}, separators=(",", ":")).encode()
    file = len(header).to_bytes(8, "little") + header + b"numbers"
    expected = hashlib.sha256(file.replace(b"7" * 64, b"0" * 64)).hexdigest()
    assert own_digest(header, memoryview(file)) == expected


def test_a_file_without_a_digest_is_hashed_as_it_is() -> None:
    assert own_digest(b"{}", memoryview(b"some bytes")) == hashlib.sha256(b"some bytes").hexdigest()
