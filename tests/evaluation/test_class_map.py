from pathlib import Path

import pytest

from vitrail.base.errors import InputError
from vitrail.evaluation.class_map import read_class_map, resolve

LABELS = ("coffee mug", "cup", "tabby, tabby cat", "crane", "crane")


def _file(folder: Path, name: str, content: str) -> Path:
    path = folder / name
    path.write_text(content)
    return path


def test_a_map_is_read_from_json_and_from_csv_alike(tmp_path: Path) -> None:
    as_json = _file(tmp_path, "map.json", '{"Mug": ["coffee mug", "cup"], "Cat": "tabby", "Bird": 3}')
    as_csv = _file(tmp_path, "map.csv", "data,model\nMug,coffee mug\nMug,cup\n\nCat,tabby\nBird,3\n")
    expected = {"Mug": [0, 1], "Cat": [2], "Bird": [3]}
    for path in (as_json, as_csv):
        assert resolve(read_class_map(path), LABELS, 5, where="the map") == expected


def test_a_csv_needs_no_heading(tmp_path: Path) -> None:
    assert read_class_map(_file(tmp_path, "map.csv", "mug,cup\n")) == {"mug": ["cup"]}


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.json", "[1]", "must be an object"),
        ("a.json", "{}", "and not empty"),
        ("a.json", '{"a": ', "cannot be read as JSON"),
        ("a.json", '{"a": 1, "a": 2}', "more than once"),
        ("a.json", '{"a": []}', "maps 'a' to"),
        ("a.json", '{"a": [1.5]}', "maps 'a' to"),
        ("a.json", '{"a": true}', "maps 'a' to"),
        ("a.csv", "a,b,c\n", "line 1 of .* is 'a,b,c', but must have two cells"),
        ("a.csv", "a,\n", "must have two cells"),
        ("a.csv", "data,model\n", "maps no class"),
    ],
)
def test_anything_but_a_map_is_refused(name: str, content: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        read_class_map(_file(tmp_path, name, content))


def test_classes_that_the_model_lacks_are_listed_with_those_that_are_ambiguous() -> None:
    with pytest.raises(InputError, match=r"names 4 classes .* or that are ambiguous: dog, 9, -1, crane"):
        resolve({"x": ["dog", "cup", 9], "y": ["-1", "crane"]}, LABELS, 5, where="the map")


def test_a_model_without_names_takes_numbers_only() -> None:
    assert resolve({"x": ["3", 4]}, None, 5, where="the map") == {"x": [3, 4]}
    with pytest.raises(InputError, match="the model has no class names"):
        resolve({"x": ["cup"]}, None, 5, where="the map")
