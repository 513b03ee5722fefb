import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from tests.data.making import picture, tree
from tests.data.pictures import encoded, photo
from vitrail import InputError
from vitrail.base.errors import ImageError
from vitrail.data import open as open_data
from vitrail.data import open_splits


def names(data) -> list[str]:
    return [os.path.relpath(data.name(index), data.where) for index in range(len(data))]


def test_class_folders_are_classes_in_the_order_of_their_names(tmp_path) -> None:
    tree(tmp_path, ["dog/1.jpg", "cat/b.png", "cat/a.JPEG", "Zebra/x.webp"])
    data = open_data(tmp_path)
    assert data.labels == ("Zebra", "cat", "dog")
    assert names(data) == ["Zebra/x.webp", "cat/a.JPEG", "cat/b.png", "dog/1.jpg"]
    assert data.targets.tolist() == [0, 1, 1, 2]
    assert data.read(3) == (tmp_path / "dog/1.jpg").read_bytes()


def test_every_known_extension_counts_in_any_case_and_nothing_else(tmp_path) -> None:
    good = ["a.jpg", "b.JPEG", "c.jfif", "d.Png", "e.webp", "f.bmp", "g.GIF", "h.tif", "i.tiff"]
    tree(
        tmp_path,
        [*(f"x/{name}" for name in good), "x/readme.txt", "x/model", "x/.hidden.jpg", "y/z.jpg", "x/a.jpg.txt"],
    )
    data = open_data(tmp_path)
    assert names(data) == [*(f"x/{name}" for name in good), "y/z.jpg"]
    assert any(note.startswith("3 files that are not images were ignored") for note in data.notes)


def test_images_deeper_inside_belong_to_the_folder_at_the_top(tmp_path) -> None:
    tree(tmp_path, ["cat/2019/may/a.jpg", "cat/b.jpg", "dog/c.jpg"])
    data = open_data(tmp_path)
    assert data.labels == ("cat", "dog")
    assert names(data) == ["cat/b.jpg", "cat/2019/may/a.jpg", "dog/c.jpg"]


def test_names_in_any_script_are_kept_and_composed(tmp_path) -> None:
    tree(
        tmp_path,
        [
            "train/cafe\u0301/猫 1.jpg",
            "train/Größe, 'x' & \"y\"/a b.jpg",
            "val/caf\u00e9/🐈.jpg",
            "val/Größe, 'x' & \"y\"/c.jpg",
        ],
    )
    splits = open_splits(tmp_path)
    assert splits["train"].labels == splits["val"].labels == ("Größe, 'x' & \"y\"", "caf\u00e9")
    assert splits["val"].targets.tolist() == [0, 1]
    assert all(splits["train"].read(index) for index in range(2))


def test_file_names_that_are_no_utf8_are_read(tmp_path) -> None:
    (tmp_path / "a").mkdir()
    with open(os.path.join(os.fsencode(tmp_path), b"a/caf\xe9.jpg"), "wb") as file:  # noqa: PTH118, PTH123
        file.write(picture(4))
    data = open_data(tmp_path)
    assert data.name(0).endswith("caf\\xe9.jpg")
    assert data.read(0) == picture(4)


@pytest.mark.parametrize("spelling", ["val", "Validation", "VALID", "dev"])
def test_split_folders_in_any_spelling(tmp_path, spelling) -> None:
    tree(
        tmp_path,
        [
            "Train/a/1.jpg",
            "Train/b/2.jpg",
            f"{spelling}/a/3.jpg",
            f"{spelling}/b/4.jpg",
            "TEST/b/5.jpg",
            "TEST/a/6.jpg",
        ],
    )
    splits = open_splits(tmp_path)
    assert list(splits) == ["train", "val", "test"]
    assert [len(data) for data in splits.values()] == [2, 2, 2]
    assert names(open_data(tmp_path, split=spelling)) == [f"{spelling}/a/3.jpg", f"{spelling}/b/4.jpg"]


def test_a_class_may_be_called_test_when_there_is_no_training_folder(tmp_path) -> None:
    tree(tmp_path, ["cat/1.jpg", "test/2.jpg", "dog/3.jpg"])
    assert open_data(tmp_path).labels == ("cat", "dog", "test")


def test_other_folders_beside_the_splits_are_left_alone_and_said_so(tmp_path) -> None:
    tree(tmp_path, ["train/a/1.jpg", "val/a/2.jpg", "meta/x.jpg"])
    data = open_data(tmp_path, split="train")
    assert len(open_data(tmp_path)) == 2
    assert any("meta" in note for note in data.notes)


def test_two_folders_for_one_split_are_refused(tmp_path) -> None:
    tree(tmp_path, ["train/a/1.jpg", "val/a/2.jpg", "valid/a/3.jpg"])
    with pytest.raises(InputError, match="mean the same split"):
        open_data(tmp_path)


def test_a_flat_folder_has_no_labels(tmp_path) -> None:
    tree(tmp_path, ["b.jpg", "a.jpg"])
    data = open_data(tmp_path)
    assert names(data) == ["a.jpg", "b.jpg"]
    assert data.labels == ()
    assert data.targets.tolist() == [-1, -1]
    assert any("no labels" in note for note in data.notes)


def test_a_flat_test_folder_beside_class_folders_has_no_labels(tmp_path) -> None:
    tree(tmp_path, ["train/a/1.jpg", "train/b/2.jpg", "test/3.jpg"])
    data = open_data(tmp_path, split="test")
    assert data.labels == ("a", "b")
    assert data.targets.tolist() == [-1]


def test_one_image_file_is_a_data_set_of_one(tmp_path) -> None:
    tree(tmp_path, ["photo.JPG"])
    data = open_data(tmp_path / "photo.JPG")
    assert (len(data), data.name(0), data.read(0)) == (1, str(tmp_path / "photo.JPG"), picture(0))


def test_loose_images_beside_class_folders_are_counted(tmp_path) -> None:
    tree(tmp_path, ["a/1.jpg", "b/2.jpg", "c.jpg"])
    data = open_data(tmp_path)
    assert len(data) == 2
    assert any(note.startswith("1 images beside the class folders") for note in data.notes)


def test_links_inside_the_tree_are_followed(tmp_path) -> None:
    tree(tmp_path / "data", ["cat/1.jpg", "store/2.jpg"])
    (tmp_path / "data/cat/link.jpg").symlink_to("../store/2.jpg")
    (tmp_path / "data/alias").symlink_to("cat")
    data = open_data(tmp_path / "data")
    assert names(data) == ["alias/1.jpg", "alias/link.jpg", "cat/1.jpg", "cat/link.jpg", "store/2.jpg"]
    assert data.read(3) == data.read(4)


def test_links_to_the_outside_are_counted_and_never_read(tmp_path) -> None:
    tree(tmp_path, ["secret/1.jpg", "data/cat/2.jpg", "data/dog/3.jpg"])
    (tmp_path / "data/cat/file.jpg").symlink_to(tmp_path / "secret/1.jpg")
    (tmp_path / "data/folder").symlink_to(tmp_path / "secret")
    data = open_data(tmp_path / "data")
    assert names(data) == ["cat/2.jpg", "dog/3.jpg"]
    assert {os.path.basename(name) for name, _ in data.ignored} == {"file.jpg", "folder"}  # noqa: PTH119
    assert all("outside" in reason for _, reason in data.ignored)
    assert data.skipped == ()
    assert any("2 entries were not followed" in note for note in data.notes)
    allowed = open_data(tmp_path / "data", root=tmp_path)
    assert names(allowed) == ["cat/2.jpg", "cat/file.jpg", "dog/3.jpg", "folder/1.jpg"]
    assert allowed.read(1) == allowed.read(3)


def test_a_file_that_becomes_a_link_to_the_outside_is_not_read(tmp_path) -> None:
    tree(tmp_path, ["secret.jpg", "data/cat/1.jpg"])
    data = open_data(tmp_path / "data")
    (tmp_path / "data/cat/1.jpg").unlink()
    (tmp_path / "data/cat/1.jpg").symlink_to(tmp_path / "secret.jpg")
    with pytest.raises(ImageError, match="outside"):
        data.read(0)


@pytest.mark.parametrize("target", [".", "..", "../..", "loop", "../cat"])
def test_loops_of_links_end(tmp_path, target) -> None:
    tree(tmp_path, ["cat/1.jpg", "dog/2.jpg"])
    (tmp_path / "cat/loop").symlink_to(target)
    data = open_data(tmp_path)
    assert "cat/1.jpg" in names(data)
    assert len(data) < 10


def test_a_link_to_nothing_and_a_pipe_do_not_hang(tmp_path) -> None:
    tree(tmp_path, ["cat/1.jpg", "dog/2.jpg"])
    (tmp_path / "cat/0.jpg").symlink_to("gone.jpg")
    os.mkfifo(tmp_path / "cat/pipe.jpg")
    data = open_data(tmp_path)
    assert names(data) == ["cat/1.jpg", "dog/2.jpg"]
    assert [reason for _, reason in data.ignored] == ["a link to nothing"]
    (tmp_path / "cat/1.jpg").unlink()
    os.mkfifo(tmp_path / "cat/1.jpg")
    with pytest.raises(ImageError, match="not a plain file"):
        data.read(0)


def test_an_image_that_vanishes_is_named(tmp_path) -> None:
    tree(tmp_path, ["cat/1.jpg", "dog/2.jpg"])
    data = open_data(tmp_path)
    shutil.rmtree(tmp_path / "cat")
    with pytest.raises(ImageError, match=r"cat/1\.jpg could not be read: No such file"):
        data.image(0)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ([], "holds no images"),
        (["a.txt", "b/c.md"], r"but 2 other files such as .*a\.txt"),
        (["train/readme.txt"], "holds no images"),
    ],
)
def test_a_folder_without_images_is_refused(tmp_path, files, message) -> None:
    with pytest.raises(InputError, match=message):
        open_data(tree(tmp_path, files))


def test_an_empty_class_folder_is_said(tmp_path) -> None:
    tree(tmp_path, ["a/1.jpg", "b/2.jpg", "c/readme.txt"])
    data = open_data(tmp_path)
    assert data.labels == ("a", "b")
    assert any("the class folders c of" in note for note in data.notes)


def test_one_class_is_said(tmp_path) -> None:
    data = open_data(tree(tmp_path, ["a/1.jpg", "a/2.jpg"]))
    assert any("one class only" in note for note in data.notes)


def test_rows_and_targets_are_flat_arrays(tmp_path) -> None:
    data = open_data(tree(tmp_path, ["a/1.jpg", "b/2.jpg"]))
    assert isinstance(data.targets, np.ndarray)
    assert data.targets.dtype == np.int32


def test_the_same_words_mean_another_folder_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for place in ("one", "other"):
        for label in ("ant", "bee"):
            (tmp_path / place / "photos" / label).mkdir(parents=True)
            (tmp_path / place / "photos" / label / "1.png").write_bytes(encoded(photo(1, 8, 8)))
        monkeypatch.chdir(tmp_path / place)
        assert open_data("photos").read(0) == Path("photos/ant/1.png").read_bytes()
        (tmp_path / "one" / "photos" / "ant" / "1.png").unlink(missing_ok=True)
