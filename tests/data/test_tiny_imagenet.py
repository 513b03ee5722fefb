"""Tiny-ImageNet-200 in the layout of tiny-imagenet-200.zip, with three classes."""

import os
from pathlib import Path

import pytest

from tests.data.making import picture, tree
from vitrail import InputError
from vitrail.cli.main import main
from vitrail.data import open as open_data
from vitrail.data import open_splits

FISH, NEWT, BULL = "n01443537", "n01629819", "n01641577"
IDS = [NEWT, FISH, BULL]  # not in the order of the alphabet
WORDS = {
    "n00001740": "entity",
    FISH: "goldfish, Carassius auratus",
    NEWT: "European fire salamander, Salamandra salamandra",
    BULL: "bullfrog, Rana catesbeiana",
}
VAL = [FISH, BULL, NEWT, FISH]


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    folder = tmp_path / "tiny-imagenet-200"
    train = [f"train/{wnid}/images/{wnid}_{number}.JPEG" for wnid in IDS for number in range(3)]
    tree(folder, [*train, *(f"val/images/val_{number}.JPEG" for number in range(len(VAL)))])
    tree(folder, [f"test/images/test_{number}.JPEG" for number in range(5)])
    for wnid in IDS:
        boxes = "".join(f"{wnid}_{number}.JPEG\t0\t10\t63\t58\n" for number in range(3))
        (folder / f"train/{wnid}/{wnid}_boxes.txt").write_text(boxes)
    lines = [f"val_{number}.JPEG\t{wnid}\t0\t32\t44\t62\n" for number, wnid in enumerate(VAL)]
    (folder / "val/val_annotations.txt").write_text("".join(lines))
    (folder / "wnids.txt").write_text("".join(f"{wnid}\n" for wnid in IDS))
    (folder / "words.txt").write_text("".join(f"{wnid}\t{text}\n" for wnid, text in WORDS.items()))
    return folder


def names(data) -> list[str]:
    return [os.path.relpath(data.name(index), data.where) for index in range(len(data))]


def test_it_opens_as_published(tiny) -> None:
    splits = open_splits(tiny)
    assert list(splits) == ["train", "val"]
    train, val = splits.values()
    assert train.labels == val.labels == tuple(WORDS[wnid] for wnid in IDS)
    assert names(train) == [f"train/{wnid}/images/{wnid}_{number}.JPEG" for wnid in IDS for number in range(3)]
    assert train.targets.tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert names(val) == [f"val/images/val_{number}.JPEG" for number in range(4)]
    assert [val.labels[target] for target in val.targets] == [WORDS[wnid] for wnid in VAL]
    assert val.read(0) == picture(9)
    assert train.ignored == train.skipped == ()


def test_the_test_images_are_left_alone_and_that_is_said(tiny) -> None:
    notes = open_data(tiny, split="train").notes
    assert [note for note in notes if "test" in note] == [
        f"the 5 images of test have no labels and were left alone; {tiny}/test/images opens them."
    ]
    assert len(open_data(tiny / "test/images")) == 5
    assert len(notes) == 1


@pytest.mark.usefixtures("unchecked")
def test_it_is_surveyed(tiny, capsys) -> None:
    assert main(["data", str(tiny), "--near", "off"]) == 0
    shown = capsys.readouterr().out
    assert "13 images, 3 classes" in " ".join(shown.split())
    assert "goldfish, Carassius auratus" in shown


def test_without_words_the_ids_are_the_names(tiny) -> None:
    (tiny / "words.txt").unlink()
    assert open_data(tiny).labels == tuple(IDS)


def test_names_that_two_classes_have_are_replaced_by_ids(tiny) -> None:
    (tiny / "words.txt").write_text(f"{FISH}\tcrane\n{BULL}\tcrane\n")
    assert open_data(tiny).labels == tuple(IDS)


def test_what_the_lists_do_not_name_is_left_alone_and_said(tiny) -> None:
    tree(tiny, ["train/n99999999/images/x.JPEG", "val/images/val_99.JPEG"])
    data = open_data(tiny)
    assert len(data) == 13
    assert any("n99999999" in note for note in data.notes)
    assert any("1 images of val have no line" in note for note in data.notes)


def test_a_class_without_a_folder_is_said(tiny) -> None:
    (tiny / f"train/{BULL}").rename(tiny / "elsewhere")
    data = open_data(tiny, split="train")
    assert len(data) == 6
    assert any("no images of 1 of 3 classes: bullfrog" in note for note in data.notes)


def test_a_validation_image_that_is_missing_is_charged(tiny) -> None:
    (tiny / "val/images/val_1.JPEG").unlink()
    with pytest.raises(InputError, match=r"1 of 13 images .*val_1\.JPEG"):
        open_data(tiny)
    assert open_data(tiny, split="val", skip_broken="1").targets.tolist() == [1, 0, 1]


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("wnids.txt", "goldfish\n", "not a WordNet id"),
        ("wnids.txt", f"{FISH}\n{FISH}\n", "twice"),
        ("wnids.txt", "\n", "no classes"),
        ("val/val_annotations.txt", "val_0.JPEG n01443537\n", "line 1 .* between tabs"),
        ("val/val_annotations.txt", "val_0.JPEG\tn99999999\t0\t0\t1\t1\n", "line 1 .* WordNet id of wnids.txt"),
        ("val/val_annotations.txt", f"a\t{FISH}\na\t{NEWT}\n", "line 2 .* a second class"),
        ("val/val_annotations.txt", f"../../x.JPEG\t{FISH}\n", r"1 of 10 images .*no such file"),
    ],
)
def test_odd_lists_are_refused(tiny, file, text, message) -> None:
    (tiny / file).write_text(text)
    with pytest.raises(InputError, match=message):
        open_data(tiny)


@pytest.mark.parametrize("place", [f"train/{FISH}", f"train/{FISH}/images", "val/images", "train", "test"])
def test_a_folder_that_lies_elsewhere_is_not_read(tiny, tmp_path, place) -> None:
    (tiny / place).rename(tmp_path / "outside")
    (tiny / place).symlink_to(tmp_path / "outside")
    data = open_data(tiny, skip_broken="50%")
    assert not any("outside" in str(Path(data.name(at)).resolve()) for at in range(len(data)))
    assert any(place in name or name in place for name in [os.path.relpath(name, tiny) for name, _ in data.ignored])


def test_an_image_that_lies_elsewhere_is_not_read(tiny, tmp_path) -> None:
    (tmp_path / "secret.JPEG").write_bytes(picture(1))
    (tiny / f"train/{FISH}/images/{FISH}_9.JPEG").symlink_to(tmp_path / "secret.JPEG")
    data = open_data(tiny)
    assert len(data) == 13
    assert [Path(name).name for name, _ in data.ignored] == [f"{FISH}_9.JPEG"]
