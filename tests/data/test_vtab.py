"""The lists of a VTAB-1k task."""

from pathlib import Path

import pytest

import vitrail
from tests.data.making import picture
from vitrail.base.errors import InputError


def task(root: Path, lists: dict[str, list[str]]) -> Path:
    """A task folder: lists, and the images that they name."""
    root.mkdir(parents=True, exist_ok=True)
    for name, lines in lists.items():
        (root / name).write_text("".join(f"{line}\n" for line in lines))
        for number, line in enumerate(lines):
            file = root / line.rsplit(maxsplit=1)[0]
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(picture(number))
    return root


WHOLE = [f"images/train800val200/{number:06}.png {number % 3}" for number in range(6)]
TEST = [f"images/test/{number:06}.png {number % 4}" for number in range(4)]


def test_the_whole_list_is_training_and_the_test_list_is_test(tmp_path: Path) -> None:
    folder = task(tmp_path / "dtd", {"train800val200.txt": WHOLE, "test.txt": TEST, "train800.txt": WHOLE[:4]})
    splits = vitrail.data.open_splits(folder)
    assert list(splits) == ["train", "test"]
    train, test = splits.values()
    assert train.targets.tolist() == [0, 1, 2, 0, 1, 2]
    assert test.targets.tolist() == [0, 1, 2, 3]
    assert train.labels == test.labels == ("0", "1", "2", "3")  # the last of which training never shows
    assert train.name(1).endswith("images/train800val200/000001.png")
    assert test.image(3).shape == (3, 5, 6)
    assert any("no images of 1 of 4 classes" in note for note in train.notes)


def test_names_without_a_suffix_will_do(tmp_path: Path) -> None:
    folder = task(tmp_path / "dtd", {"train800val200": WHOLE, "test": TEST})
    assert [len(split) for split in vitrail.data.open_splits(folder).values()] == [6, 4]


def test_two_halves_make_the_whole(tmp_path: Path) -> None:
    folder = task(tmp_path / "dtd", {"train800.txt": WHOLE[:4], "val200.txt": WHOLE[4:], "test.txt": TEST})
    assert vitrail.data.open(folder, split="train").targets.tolist() == [0, 1, 2, 0, 1, 2]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("images/test/000002.png", r"line 3 of .*test\.txt is not `PATH LABEL`"),
        ("images/test/000002.png cat", r"line 3 of .*test\.txt is not `PATH LABEL`"),
        ("images/test/000002.png -1", r"line 3 of .*test\.txt is not `PATH LABEL`"),
        ("images/test/000002.png 1000000", r"line 3 of .*test\.txt is not `PATH LABEL`"),
        ("17", r"line 3 of .*test\.txt is not `PATH LABEL`"),
        ("../elsewhere.png 1", r"line 3 of .*test\.txt cannot be used: the path leads out"),
        ("/etc/passwd 1", r"line 3 of .*test\.txt cannot be used: the path leads out"),
    ],
)
def test_a_broken_line_is_named_with_its_file(line: str, said: str, tmp_path: Path) -> None:
    folder = task(tmp_path / "dtd", {"train800val200.txt": WHOLE, "test.txt": TEST})
    (folder / "test.txt").write_text("\n".join([*TEST[:2], line, ""]))
    with pytest.raises(InputError, match=said):
        vitrail.data.open_splits(folder)


def test_blank_lines_tabs_and_spaces_in_names_are_understood(tmp_path: Path) -> None:
    folder = task(tmp_path / "dtd", {"train800val200.txt": WHOLE, "test.txt": ["images/a b.png 1"]})
    (folder / "test.txt").write_bytes(b"\r\nimages/a b.png\t1\r\n\n")
    assert vitrail.data.open(folder, split="test").targets.tolist() == [1]


def test_a_list_that_is_missing_or_empty_is_one_sentence(tmp_path: Path) -> None:
    folder = task(tmp_path / "dtd", {"train800val200.txt": WHOLE})
    with pytest.raises(InputError, match=r"has no test\.txt"):
        vitrail.data.open_splits(folder)
    (folder / "test.txt").write_text("\n")
    with pytest.raises(InputError, match=r"test\.txt lists no images"):
        vitrail.data.open_splits(folder)
    half = task(tmp_path / "half", {"train800.txt": WHOLE, "test.txt": TEST})
    with pytest.raises(InputError, match=r"has no val200\.txt"):
        vitrail.data.open_splits(half)


def test_an_image_that_is_not_there_is_named(tmp_path: Path) -> None:
    folder = task(tmp_path / "dtd", {"train800val200.txt": WHOLE, "test.txt": TEST})
    (folder / "images/test/000002.png").unlink()
    with pytest.raises(InputError, match=r"000002\.png"):
        vitrail.data.open_splits(folder)
    assert len(vitrail.data.open(folder, split="test", skip_broken="1")) == 3
