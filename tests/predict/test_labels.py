from pathlib import Path

import pytest

from vitrail import InputError
from vitrail.predict import labels
from vitrail.predict.labels import read_labels


def test_lines_are_names_without_space_around_them(tmp_path: Path) -> None:
    path = tmp_path / "names.txt"
    path.write_bytes("\ufefftench \r\n  goldfish\r\nÉcrevisse\r\n\r\n".encode())
    assert read_labels(path) == ("tench", "goldfish", "Écrevisse")


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("x.txt", b"ant\n\nbee\n", "line 2 of .* is empty"),
        ("x.txt", b"\xff\xfe\x00", "is no text in UTF-8"),
        ("x.json", b"[1, 2]", "holds no list of class names"),
        ("x.json", b'{"0": "ant", "2": "bee"}', "holds no list of class names"),
        ("x.json", b'{"0": ["n01", "ant"]}', "holds no list of class names"),
        ("x.json", b"[", "cannot be read as JSON"),
        ("x.json", b"[" * 100_000, "cannot be read as JSON"),
    ],
)
def test_what_are_no_names_is_one_sentence(name: str, content: bytes, said: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InputError, match=said):
        read_labels(path)


def test_a_missing_or_huge_file_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="cannot be read: No such file"):
        read_labels(tmp_path / "nowhere.txt")
    monkeypatch.setattr(labels, "MOST_BYTES", 3)
    (tmp_path / "x.txt").write_text("ants\n")
    with pytest.raises(InputError, match="more than the 3"):
        read_labels(tmp_path / "x.txt")
