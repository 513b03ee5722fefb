"""Class names from a file, and one sentence for what is none."""

import json
from pathlib import Path

import pytest

from vitrail.base.errors import InputError
from vitrail.data.labels import read_labels


def test_lines_are_names_without_space_around_them(tmp_path: Path) -> None:
    path = tmp_path / "names.txt"
    path.write_bytes("\ufefftench \r\n  goldfish\r\nÉcrevisse\r\n\r\n".encode())
    assert read_labels(path, 3) == ("tench", "goldfish", "Écrevisse")


@pytest.mark.parametrize("name", ["names.json", "names"])
def test_a_json_list_is_known_by_its_suffix_or_its_bracket(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(json.dumps(["cat", "dog, hound"]))
    assert read_labels(tmp_path / name, 2) == ("cat", "dog, hound")


def test_a_json_table_goes_from_numbers_to_names(tmp_path: Path) -> None:
    (tmp_path / "names.json").write_text('{"1": "bee", "0": "ant"}')
    assert read_labels(tmp_path / "names.json", 2) == ("ant", "bee")


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("x.txt", b"ant\n\nbee\n", "line 2 of .* is empty"),
        ("x.txt", b"cat\n", "has 1 names, but the model has 2 classes"),
        ("x.txt", b"\xff\xfe\x00", "is not text in UTF-8"),
        ("x.json", b"[1, 2]", "is neither a list of class names"),
        ("x", b'["cat", 7]', "is neither a list of class names"),
        ("x.json", b'{"0": "ant", "2": "bee"}', "is neither a list of class names"),
        ("x.json", b'{"0": ["n01", "ant"]}', "is neither a list of class names"),
        ("x.json", b"[", "cannot be read as JSON"),
        ("x", b'["cat"', "cannot be read as JSON"),
        ("x.json", b"[" * 100_000, "cannot be read as JSON"),
    ],
)
def test_what_are_no_names_is_one_sentence(name: str, content: bytes, said: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InputError, match=said):
        read_labels(path, 2)


def test_a_missing_or_huge_file_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="cannot be read: No such file"):
        read_labels(tmp_path / "nowhere.txt", 2)
    monkeypatch.setenv("VITRAIL_LIMIT_TEXT_BYTES", "3")
    (tmp_path / "x.txt").write_text("ants\n")
    with pytest.raises(InputError, match="has 5 bytes, more than the 3 "):
        read_labels(tmp_path / "x.txt", 1)
