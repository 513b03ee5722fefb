import os
import struct
import zlib

import numpy as np
import pytest
import scipy.io
from hypothesis import given
from hypothesis import strategies as st

from tests.data.making import picture, tree
from vitrail import InputError
from vitrail.data import open as open_data
from vitrail.data import open_splits
from vitrail.data.sources.matlab import read_matlab

IDS = ["n02119789", "n02100735", "n01440764"]


def names(data) -> list[str]:
    return [os.path.relpath(data.name(index), data.where) for index in range(len(data))]


@pytest.mark.parametrize("packed", [True, False])
@given(st.data())
def test_arrays_and_tables_are_what_scipy_wrote(tmp_path_factory, packed, data) -> None:
    kind = data.draw(st.sampled_from(["u1", "i1", "u2", "i2", "u4", "i4", "f4", "f8", "i8"]))
    shape = data.draw(st.tuples(st.integers(1, 4), st.integers(1, 7)))
    array = (np.arange(np.prod(shape)) * data.draw(st.integers(1, 90)) % 120).astype(kind).reshape(shape)
    rows = data.draw(st.integers(1, 5))
    table = np.zeros((rows, 1), [("ID", object), ("WNID", object), ("long_name_of_a_field", object)])
    for row in range(rows):
        table[row, 0] = (float(row), f"n{row:08d}", "größer " * row)
    path = tmp_path_factory.mktemp("mat") / "x.mat"
    scipy.io.savemat(
        path,
        {"a": array, "text": "hello", "table": table, "cells": np.array([[1, "x"]], object)},
        do_compression=packed,
    )
    found = read_matlab(path)
    np.testing.assert_array_equal(found["a"], array)
    assert found["text"] == "hello"
    assert found["table"]["WNID"] == [f"n{row:08d}" for row in range(rows)]
    assert [value.item() for value in found["table"]["ID"]] == list(range(rows))
    assert found["table"]["long_name_of_a_field"] == [
        "größer " * row or found["table"]["long_name_of_a_field"][row] for row in range(rows)
    ]


@given(st.data())
def test_a_mutated_mat_file_is_read_or_refused_in_a_sentence(tmp_path_factory, data) -> None:
    path = tmp_path_factory.mktemp("mat") / "x.mat"
    scipy.io.savemat(path, {"labels": np.arange(30)[None], "text": "x"}, do_compression=data.draw(st.booleans()))
    whole = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        whole[data.draw(st.integers(100, len(whole) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(whole[: data.draw(st.integers(0, len(whole)))] if data.draw(st.booleans()) else whole)
    try:
        read_matlab(path)
    except InputError as error:
        assert str(path) in str(error)  # noqa: PT017


def test_a_mat_file_of_endless_empty_elements_is_refused(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("VITRAIL_LIMIT_ELEMENTS", "1000")
    scipy.io.savemat(tmp_path / "x.mat", {"labels": np.arange(30)[None]})
    whole = (tmp_path / "x.mat").read_bytes()
    assert read_matlab(tmp_path / "x.mat")["labels"].shape == (1, 30)
    packed = zlib.compress(whole[128:] + bytes(8 * 1000))
    (tmp_path / "x.mat").write_bytes(whole[:128] + struct.pack("<II", 15, len(packed)) + packed)
    with pytest.raises(InputError, match=r"more than the 1,000 that are read.*VITRAIL_LIMIT_ELEMENTS"):
        read_matlab(tmp_path / "x.mat")


def flowers(folder, labels: list[int], trnid: list[int], valid: list[int], tstid: list[int]) -> None:
    tree(folder, [f"jpg/image_{number:05d}.jpg" for number in range(1, len(labels) + 1)])
    scipy.io.savemat(folder / "imagelabels.mat", {"labels": np.array([labels], np.uint8)}, do_compression=True)
    lists = {"trnid": trnid, "valid": valid, "tstid": tstid}
    scipy.io.savemat(
        folder / "setid.mat", {key: np.array([ids], np.uint16) for key, ids in lists.items()}, do_compression=True
    )


def test_flowers_have_the_published_labels_and_split(tmp_path) -> None:
    flowers(tmp_path, [77, 1, 102, 77, 5, 5], [2, 1], [6], [3, 4, 5])
    splits = open_splits(tmp_path)
    assert {name: names(data) for name, data in splits.items()} == {
        "train": ["jpg/image_00001.jpg", "jpg/image_00002.jpg"],
        "val": ["jpg/image_00006.jpg"],
        "test": ["jpg/image_00003.jpg", "jpg/image_00004.jpg", "jpg/image_00005.jpg"],
    }
    assert splits["train"].labels == tuple(map(str, range(1, 103)))
    assert [splits["test"].labels[target] for target in splits["test"].targets] == ["102", "77", "5"]
    assert splits["val"].read(0) == picture(5)


def test_flowers_with_wrong_numbers_or_missing_images_are_refused(tmp_path) -> None:
    flowers(tmp_path, [77, 103], [1], [2], [])
    with pytest.raises(InputError, match="from 1 to 102"):
        open_data(tmp_path)
    flowers(tmp_path, [77, 1], [1], [9], [])
    with pytest.raises(InputError, match=r"valid of .* names images beyond the 2"):
        open_data(tmp_path)
    flowers(tmp_path, [77, 1, 2], [1], [2], [3])
    (tmp_path / "jpg/image_00002.jpg").unlink()
    with pytest.raises(InputError, match=r"1 of 3 images .*image_00002\.jpg"):
        open_data(tmp_path)
    assert len(open_data(tmp_path, skip_broken="1")) == 2


def pets(folder, trainval: str, test: str, images: list[str]) -> None:
    tree(folder, [f"images/{name}.jpg" for name in images])
    (folder / "annotations").mkdir(exist_ok=True)
    (folder / "annotations/trainval.txt").write_text(trainval)
    (folder / "annotations/test.txt").write_text(test)


def test_pets_have_the_published_lists(tmp_path) -> None:
    images = ["Abyssinian_1", "Abyssinian_20", "great_pyrenees_3", "great_pyrenees_4", "not_listed_5"]
    pets(
        tmp_path,
        "# a comment\nAbyssinian_20 1 1 1\ngreat_pyrenees_3 2 2 1\n",
        "great_pyrenees_4 2 2 1\nAbyssinian_1 1 1 1\n",
        images,
    )
    splits = open_splits(tmp_path)
    assert splits["train"].labels == ("Abyssinian", "great_pyrenees")
    assert names(splits["train"]) == ["images/Abyssinian_20.jpg", "images/great_pyrenees_3.jpg"]
    assert splits["test"].targets.tolist() == [1, 0]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("Abyssinian_1", "not `NAME NUMBER"),
        ("../x_1 1 1 1", "not `NAME"),
        (f"Boxer_1 {'9' * 5000} 1 1", "not `NAME"),
        ("Boxer_1 1 1 1", "the number of Abyssinian"),
        ("Boxer_1 9 1 1", "2 classes up to 9"),
        ("# none", "missing"),
    ],
)
def test_pets_with_odd_lists_are_refused(tmp_path, line, message) -> None:
    pets(tmp_path, "Abyssinian_1 1 1 1\nAbyssinian_9 1 1 1", line, ["Abyssinian_1", "Boxer_1"])
    with pytest.raises(InputError, match=message):
        open_data(tmp_path)


def imagenet(folder, *, val: int = 3) -> None:
    tree(
        folder,
        [
            *(f"train/{wnid}/{wnid}_{number}.JPEG" for wnid in IDS for number in range(2)),
            *(f"val/ILSVRC2012_val_{number:08d}.JPEG" for number in range(1, val + 1)),
        ],
    )


def found_ids(folder) -> list[str]:
    data = open_data(folder, split="val")
    assert data.labels == tuple(sorted(IDS))
    return [data.labels[target] for target in data.targets]


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("val_labels.txt", ["V2.JPEG n02100735", "V1.JPEG n01440764", "V3.JPEG\tn02119789"]),
        ("val/val_labels.csv", ["name,id", "V1,n01440764", "V2,n02100735", "V3,n02119789"]),
        (
            "LOC_val_solution.csv",
            [
                "ImageId,PredictionString",
                "V3,n02119789 1 2 3 4 n02119789 1 2 ",
                "V2,n02100735 1 1",
                "V1,n01440764 85 1",
            ],
        ),
        ("imagenet_2012_validation_synset_labels.txt", ["n01440764", "n02100735", "n02119789"]),
    ],
)
def test_validation_labels_of_imagenet_from_a_map_or_list(tmp_path, name, lines) -> None:
    imagenet(tmp_path)
    (tmp_path / name).write_text("\n".join(lines).replace("V", "ILSVRC2012_val_0000000"))
    assert found_ids(tmp_path) == ["n01440764", "n02100735", "n02119789"]


def test_validation_labels_of_imagenet_from_the_devkit(tmp_path) -> None:
    imagenet(tmp_path)
    kit = tmp_path / "ILSVRC2012_devkit_t12/data"
    kit.mkdir(parents=True)
    (kit / "ILSVRC2012_validation_ground_truth.txt").write_text("3\n2\n1\n")
    with pytest.raises(InputError, match=r"meta\.mat"):
        open_data(tmp_path)
    (kit / "synsets.txt").write_text("".join(f"{wnid} some words\n" for wnid in IDS))
    assert found_ids(tmp_path) == ["n01440764", "n02100735", "n02119789"]
    table = np.zeros((3, 1), [("ILSVRC2012_ID", object), ("WNID", object), ("words", object)])
    for row, wnid in enumerate(IDS[::-1]):
        table[row, 0] = (float(row + 1), wnid, "some words")
    scipy.io.savemat(kit / "meta.mat", {"synsets": table}, do_compression=True)
    assert found_ids(tmp_path) == ["n02119789", "n02100735", "n01440764"]


def test_an_alphabetical_list_is_not_taken_for_the_devkits_order(tmp_path) -> None:
    imagenet(tmp_path)
    (tmp_path / "ILSVRC2012_validation_ground_truth.txt").write_text("1\n2\n3\n")
    (tmp_path / "synset_words.txt").write_text("".join(f"n{number:08d} words\n" for number in range(1000)))
    with pytest.raises(InputError, match="alphabetical order"):
        open_data(tmp_path)


def test_imagenet_labels_that_do_not_fit_are_refused(tmp_path) -> None:
    imagenet(tmp_path)
    (tmp_path / "val_labels.txt").write_text("ILSVRC2012_val_00000001.JPEG n01440764\n")
    with pytest.raises(InputError, match="no WordNet id for 2 of 3"):
        open_data(tmp_path)
    (tmp_path / "val_labels.txt").unlink()
    (tmp_path / "synsets.txt").write_text("\n".join(IDS))
    for text, message in (
        ("1\n2\n", "lists 2 labels, but .* number 3"),
        ("1\n2\n4\n", "none of the 3 classes"),
        ("1 x", "none of the 3"),
    ):
        (tmp_path / "ILSVRC2012_validation_ground_truth.txt").write_text(text)
        with pytest.raises(InputError, match=message):
            open_data(tmp_path)


def test_imagenet_validation_in_class_folders_needs_no_list(tmp_path) -> None:
    tree(tmp_path, [f"{split}/{wnid}/1.JPEG" for split in ("train", "val") for wnid in IDS])
    assert found_ids(tmp_path) == sorted(IDS)


def test_flat_validation_images_without_labels_have_none(tmp_path) -> None:
    imagenet(tmp_path)
    data = open_data(tmp_path, split="val")
    assert data.targets.tolist() == [-1, -1, -1]
