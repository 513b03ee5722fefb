"""One file is one image: repeated rows of a list, and names that become one class."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.data.making import picture, tar, tree
from vitrail import InputError
from vitrail.data import open as open_data
from vitrail.data import open_splits
from vitrail.data.names import names_of
from vitrail.data.sources.repeats import repeated


@given(st.lists(st.text("ab/é", max_size=20).map(str.encode), max_size=30))
def test_repeated_paths_are_those_that_counting_finds(paths) -> None:
    assert repeated(names_of(paths)).tolist() == [row for row, path in enumerate(paths) if paths.count(path) > 1]


def test_paths_over_several_pieces_are_compared(monkeypatch) -> None:
    monkeypatch.setattr("vitrail.data.sources.repeats._AT_A_TIME", 7)
    paths = [f"folder/of/images/{number % 40:03}.jpg".encode() for number in range(45)]
    assert repeated(names_of(paths)).tolist() == [*range(5), *range(40, 45)]


def manifest(folder: Path, rows: list[str], *, quoted: bool = False) -> Path:
    tree(folder, [f"{number}.png" for number in range(6)])
    lines = [f'"{row.partition(",")[0]}",{row.partition(",")[2]}' if quoted else row for row in rows]
    (folder / "list.csv").write_text("path,label,split\n" + "\n".join(lines) + "\n")
    return folder / "list.csv"


@pytest.mark.parametrize("quoted", [False, True])
def test_a_file_that_is_listed_twice_is_never_in_two_splits(tmp_path, quoted) -> None:
    rows = [f"{number % 6}.png,{'cat' if number % 2 else 'dog'}," for number in range(24)]
    path = manifest(tmp_path, rows, quoted=quoted)
    for seed in range(5):
        splits = open_splits(path, val_fraction=0.5, seed=seed)
        names = [{data.name(index) for index in range(len(data))} for data in splits.values()]
        assert not names[0] & names[1]
        assert sum(map(len, splits.values())) == 6
    assert any("18 rows of" in note and "list a file again" in note for note in splits["train"].notes)


def test_a_file_with_two_labels_is_broken(tmp_path) -> None:
    path = manifest(tmp_path, ["0.png,cat,", "1.png,dog,", "0.png,dog,"])
    with pytest.raises(InputError, match=r"0\.png \(it is listed more than once, with different labels\)"):
        open_data(path)
    assert len(open_data(path, skip_broken="1")) == 2


def test_a_file_that_a_list_puts_into_two_splits_is_mentioned(tmp_path) -> None:
    path = manifest(tmp_path, ["0.png,cat,train", "1.png,dog,train", "0.png,cat,val", "0.png,cat,val"])
    splits = open_splits(path)
    assert {name: len(data) for name, data in splits.items()} == {"train": 2, "val": 1}
    assert any("1 files of" in note and "in more than one split" in note for note in splits["train"].notes)


def test_folders_that_become_one_class_are_mentioned(tmp_path) -> None:
    data = open_data(tree(tmp_path, ["cat/1.png", "cat /2.png", "dog/3.png", "é/4.png", "e\u0301/5.png"]))
    assert (data.labels, data.counts.tolist()) == (("cat", "dog", "é"), [2, 1, 2])
    (note,) = [note for note in data.notes if "more than one way" in note]
    assert "'cat' and 'cat '" in note
    assert r"'e\u0301' and '\xe9'" in note


def test_labels_that_become_one_class_are_mentioned(tmp_path) -> None:
    path = manifest(tmp_path, ["0.png,cat,", "1.png, cat,", "2.png,dog,", "3.png,  ,"])
    data = open_data(path)
    assert (data.labels, data.targets.tolist()) == (("cat", "dog"), [0, 0, 1, -1])
    assert any("'cat' and ' cat'" in note for note in data.notes)
    shard = tar(
        tmp_path / "x.tar", {"a.png": picture(), "a.txt": b"cat", "b.png": picture(), "b.json": b'{"label": "cat "}'}
    )
    assert any("'cat' and 'cat '" in note for note in open_data(shard).notes)


def test_each_class_written_in_one_way_needs_no_note(tmp_path) -> None:
    data = open_data(tree(tmp_path, ["cat/1.png", "dog /2.png"]))
    assert data.labels == ("cat", "dog")
    assert not [note for note in data.notes if "more than one way" in note]
    assert np.array_equal(data.targets, [0, 1])
