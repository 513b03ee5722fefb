import hashlib
import os
import subprocess
import sys
from importlib import resources
from pathlib import Path

import numpy as np
import pytest

import vitrail
from tests.data.making import picture, tar, tree
from vitrail import ConfigError, InputError, VitrailError
from vitrail.data import open as open_data
from vitrail.data import open_splits, save_index


def test_the_sample_is_what_the_notice_says() -> None:
    splits = open_splits("sample")
    assert {name: data.counts.tolist() for name, data in splits.items()} == {"train": [600] * 10, "test": [100] * 10}
    assert splits["train"].labels[0] == "T-shirt/top"
    assert splits["train"].channels == 1
    assert splits["train"].image(0).shape == (1, 28, 28)
    assert splits["test"].name(3) == "sample:x_test[3]"
    folder = resources.files("vitrail.data") / "sample"
    assert "MIT License" in (folder / "NOTICE").read_text()
    assert Path(str(folder / "fashion-mnist.npz")).stat().st_size < 5_000_000


def test_the_sample_is_the_one_that_the_program_made() -> None:
    digest = hashlib.sha256()
    with np.load(Path(str(resources.files("vitrail.data"))) / "sample/fashion-mnist.npz") as arrays:
        for name in ("x_train", "y_train", "x_test", "y_test"):
            digest.update(arrays[name].tobytes())
    assert digest.hexdigest() == "8eaf6bb9e82961e7d73312d5259adebcdcb8829b4ea3955abd11eba9b97b7b57"


def test_the_room_opens_from_the_package_and_torch_waits() -> None:
    code = "import sys, vitrail.data; assert 'torch' not in sys.modules; print(len(vitrail.data.open('sample')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "7000\n"
    assert vitrail.data.open is open_data
    assert "open" in dir(vitrail.data)
    with pytest.raises(AttributeError, match="has no attribute 'opn'"):
        _ = vitrail.data.opn


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("smaple", "Did you mean sample"),
        ("phtos", "Did you mean photos"),
        ("photos/cat.zip", "packed archive"),
        ("photos/model.bin", "none of the files that are understood"),
        ("https://host/x", "nothing is fetched"),
        ("pipe", "neither a file nor a folder"),
        ("none/such/place", "there is no none/such/place"),
        ("bad\0name", "zero byte"),
    ],
)
def test_what_is_no_data_is_refused_in_a_sentence(tmp_path, monkeypatch, where, message) -> None:
    tree(tmp_path, ["photos/cat/1.jpg"])
    (tmp_path / "photos/cat.zip").write_bytes(b"PK")
    (tmp_path / "photos/model.bin").write_bytes(b"xx")
    os.mkfifo(tmp_path / "pipe")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(VitrailError, match=message):
        open_data(where)


def test_one_pile_is_cut_class_by_class_and_by_the_seed(tmp_path) -> None:
    tree(tmp_path, [f"{name}/{number}.jpg" for name, count in (("a", 20), ("b", 10)) for number in range(count)])
    train, val = (
        open_data(tmp_path, split="train", val_fraction=0.2),
        open_data(tmp_path, split="val", val_fraction=0.2),
    )
    assert train.counts.tolist() == [16, 8]
    assert val.counts.tolist() == [4, 2]
    assert sorted([*train.rows, *val.rows]) == list(range(30))
    assert (train.split, val.split) == ("train", "val")
    assert open_data(tmp_path, split="validation", val_fraction=0.2).rows.tolist() == val.rows.tolist()
    assert list(open_splits(tmp_path)) == ["train", "val"]
    assert len(open_data(tmp_path)) == 30


def test_a_training_folder_alone_is_cut_too(tmp_path) -> None:
    tree(tmp_path, [f"train/{name}/{number}.jpg" for name in "ab" for number in range(10)])
    splits = open_splits(tmp_path)
    assert {name: len(data) for name, data in splits.items()} == {"train": 18, "val": 2}


@pytest.mark.parametrize(("there", "asked"), [("val", "test"), ("test", "val")])
def test_the_one_held_out_split_answers_for_the_other(tmp_path, there, asked) -> None:
    tree(tmp_path, [f"{split}/{name}/1.jpg" for split in ("train", there) for name in "ab"])
    data = open_data(tmp_path, split=asked)
    assert data.split == there
    assert any(f"has no {asked} split; its {there} split was taken" in note for note in data.notes)
    assert list(open_splits(tmp_path)) == ["train", there]


def test_a_split_that_is_not_there_is_refused(tmp_path) -> None:
    tree(tmp_path, [f"{split}/{name}/1.jpg" for split in ("val", "test") for name in "ab"])
    with pytest.raises(InputError, match="has the splits val, test, but no train"):
        open_data(tmp_path, split="train")
    with pytest.raises(InputError, match="Did you mean test"):
        open_data(tmp_path, split="tset")


@pytest.mark.parametrize("fraction", [0.0, 1.0, -0.5, 7.0])
def test_a_fraction_that_cuts_nothing_is_refused(fraction) -> None:
    with pytest.raises(ConfigError, match="val_fraction"):
        open_data("sample", val_fraction=fraction)


def test_a_split_that_lacks_a_class_keeps_the_numbers(tmp_path) -> None:
    tree(tmp_path, ["train/a/1.jpg", "train/b/1.jpg", "train/c/1.jpg", "val/c/1.jpg", "val/a/2.jpg"])
    data = open_data(tmp_path, split="val")
    assert data.labels == ("a", "b", "c")
    assert data.targets.tolist() == [0, 2]
    assert any("has no images of 1 of 3 classes: b." in note for note in data.notes)


def test_a_split_that_adds_a_class_is_refused_and_training_says_so(tmp_path) -> None:
    tree(tmp_path, ["train/b/1.jpg", "train/c/1.jpg", "val/a/1.jpg", "val/b/2.jpg"])
    with pytest.raises(
        InputError,
        match=r"the val split of .* 1 images of 1 classes .* among the 2 known ones: a\. The known ones are b, c",
    ):
        open_data(tmp_path, split="val")
    train = open_data(tmp_path, split="train")
    assert train.labels == ("b", "c")
    assert any("1 classes without training images: a" in note for note in train.notes)
    everything = open_data(tmp_path)
    assert everything.labels == ("b", "c", "a")
    assert everything.counts.tolist() == [2, 1, 1]


def test_given_labels_are_matched_by_name(tmp_path) -> None:
    tree(tmp_path, ["cat/1.jpg", "dog/2.jpg"])
    data = open_data(tmp_path, labels=["dog", "owl", "cat"])
    assert data.labels == ("dog", "owl", "cat")
    assert data.targets.tolist() == [2, 0]
    with pytest.raises(InputError, match="known ones: cat"):
        open_data(tmp_path, labels=["dog", "owl"])


def test_whole_numbers_are_places_in_given_labels(tmp_path) -> None:
    path = tmp_path / "x.npz"
    np.savez(path, x=np.zeros((3, 2, 2), np.uint8), y=np.array([2, 0, 1]))
    data = open_data(path, labels=["a", "b", "c", "d"])
    assert data.targets.tolist() == [2, 0, 1]
    assert any("taken as places" in note for note in data.notes)
    with pytest.raises(InputError, match="not among the 2 known ones: 2"):
        open_data(path, labels=["a", "b"])
    assert open_data(path, labels=["2", "1", "0"]).targets.tolist() == [0, 2, 1]


def test_images_without_labels_open_with_the_labels_of_a_model(tmp_path) -> None:
    tree(tmp_path, ["1.jpg"])
    data = open_data(tmp_path, labels=["a", "b"])
    assert (data.labels, data.targets.tolist()) == (("a", "b"), [-1])


def test_an_index_of_files_or_shards_opens_as_what_it_was_made_from(tmp_path) -> None:
    tree(tmp_path / "data", ["train/a/1.jpg", "train/b/2.jpg", "val/b/3.jpg", "train/b/é.jpg"])
    tar(tmp_path / "shards/train-0.tar", {"1.jpg": picture(1), "1.cls": b"1", "2.jpg": picture(2), "2.cls": b"0"})
    for where, split in (("data", "val"), ("shards", "train")):
        save_index(tmp_path / where, tmp_path / f"{where}.index")
        before, after = open_data(tmp_path / where, split=split), open_data(tmp_path / f"{where}.index", split=split)
        assert after.labels == before.labels
        assert after.targets.tolist() == before.targets.tolist()
        assert [after.name(index) for index in range(len(after))] == [
            before.name(index) for index in range(len(before))
        ]
        assert [after.read(index) for index in range(len(after))] == [
            before.read(index) for index in range(len(before))
        ]
    with pytest.raises(InputError, match="only files and tar shards"):
        save_index("sample", tmp_path / "x.index")


def test_an_index_does_not_lead_out_of_its_folder(tmp_path) -> None:
    tree(tmp_path, ["data/a/1.jpg", "data/b/2.jpg"])
    (tmp_path / "lists").mkdir()
    save_index(tmp_path / "data", tmp_path / "lists/x.index")
    with pytest.raises(InputError, match="give a root folder above it"):
        open_data(tmp_path / "lists/x.index")
    assert open_data(tmp_path / "lists/x.index", root=tmp_path).read(1) == picture(1)


def test_an_index_whose_arrays_do_not_fit_is_refused(tmp_path) -> None:
    from vitrail.data.index import map_arrays, write_arrays

    tree(tmp_path, ["data/a/1.jpg", "data/b/2.jpg"])
    path = tmp_path / "x.index"
    save_index(tmp_path / "data", path)
    described, arrays = map_arrays(path)
    arrays = {name: np.array(values) for name, values in arrays.items()}
    for change in (
        {"targets": np.array([0, 7], np.int32)},
        {"targets": np.array([0, -3], np.int32)},
        {"targets": np.array([0], np.int32)},
        {"offsets": np.array([0, 100, 7])},
        {"offsets": np.array([0, 7, 9, 14])},
        {"offsets": np.array([], int)},
    ):
        write_arrays(path, described, arrays | change)
        with pytest.raises(InputError, match="do not fit together"):
            open_data(path)
    for missing in ("names", "root"):
        write_arrays(path, {key: value for key, value in described.items() if key != missing}, arrays)
        with pytest.raises(InputError, match="do not fit together"):
            open_data(path)


def test_class_folders_beside_a_tar_file_are_mentioned(tmp_path) -> None:
    tree(tmp_path, ["cat/1.png", "dog/2.png"])
    tar(tmp_path / "backup.tar", {"a.png": picture()})
    data = open_data(tmp_path)
    assert len(data) == 1
    assert any("backup.tar; its folders (cat, dog) were left alone" in note for note in data.notes)
