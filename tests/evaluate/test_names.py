import json
from pathlib import Path

import pytest

from vitrail.base.errors import InputError
from vitrail.evaluate.names import Labels, are_numbers, read_labels

IMAGENET = Labels(
    (
        "n01440764 tench, Tinca tinca",
        "great white shark, white shark",
        "crane",
        "drake",
        "crane, machine",
        "T-shirt/top",
    )
)


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("n01440764", [0]),
        ("Tench", [0]),
        ("tinca_tinca", [0]),
        ("great white shark, white shark", [1]),
        ("White-Shark", [1]),
        ("great__white  shark", [1]),
        ("crane", [2]),  # as it is comes first
        ("Crane", [2]),  # then the whole label in another spelling
        ("machine", [4]),
        ("t_shirt/TOP", [5]),
        ("dog", []),
        ("", []),
    ],
)
def test_a_name_is_found_in_any_spelling_that_the_label_gives(name: str, found: list[int]) -> None:
    assert IMAGENET.find(name) == found


def test_a_name_that_two_labels_have_is_refused_with_their_numbers() -> None:
    with pytest.raises(InputError, match=r"crane \(1 or 2\); say with --class-map"):
        Labels(("dog", "crane", "crane")).match(("dog", "crane"), where="birds")


def test_two_names_of_one_class_are_refused() -> None:
    with pytest.raises(InputError, match="the classes Dog and dog, which are both dog in the model"):
        Labels(("cat", "dog")).match(("Dog", "dog"), where="pets")


def test_names_that_nobody_has_are_none() -> None:
    assert Labels(("cat", "dog")).match(("dog", "emu", "Cat"), where="pets") == [1, None, 0]


def test_whole_numbers_in_order_are_told_from_other_names() -> None:
    assert are_numbers(("0", "1", "2"))
    assert not are_numbers(("1", "2"))
    assert not are_numbers(("0", "one"))
    assert not are_numbers(())


def test_labels_are_read_from_lines_and_from_json(tmp_path: Path) -> None:
    lines, listed = tmp_path / "names.txt", tmp_path / "names.json"
    lines.write_text("\N{BYTE ORDER MARK}cat\n dog \n\n", encoding="utf-8")
    listed.write_text(json.dumps(["cat", "dog, hound"]))
    assert read_labels(lines, 2) == ("cat", "dog")
    assert read_labels(listed, 2) == ("cat", "dog, hound")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"cat\n", "has 1 names, but the model has 2 classes"),
        (b'["cat", 7]', "not one of names only"),
        (b'["cat"', "begins like a JSON list, but is none"),
        (b"\xff\xfe\x00", "no text in UTF-8"),
    ],
)
def test_a_list_that_is_none_is_refused(content: bytes, said: str, tmp_path: Path) -> None:
    path = tmp_path / "names"
    path.write_bytes(content)
    with pytest.raises(InputError, match=said):
        read_labels(path, 2)


def test_a_list_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read: No such file"):
        read_labels(tmp_path / "nowhere", 2)
