import os
import pickle
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.data.making import picture
from vitrail import ConfigError, InputError
from vitrail.base.errors import ImageError
from vitrail.base.extras import require
from vitrail.data import open as open_data
from vitrail.data import open_splits

SAVED = Path(__file__).parent.parent / "golden" / "huggingface_saved"
"""What `datasets` 5.2.0 wrote: DatasetDict(train of 5, test of 2).save_to_disk, PNGs of 4x3, classes cat and dog."""


def table(count: int, *, words: bool = False, first: int = 0) -> pa.Table:
    images = [{"bytes": picture(first + n), "path": f"{n}.png"} for n in range(count)]
    return pa.table({"image": images, "label": [("b", "a", None)[n % 3] if words else n % 2 for n in range(count)]})


def test_parquet_is_read_by_row_group(tmp_path) -> None:
    pq.write_table(table(10), tmp_path / "x.parquet", row_group_size=3)
    data = open_data(tmp_path / "x.parquet")
    assert data.labels == ("0", "1")
    assert data.targets.tolist() == [0, 1] * 5
    assert [data.read(index) for index in (9, 0, 5, 4, 2, 7, 9)] == [picture(n) for n in (9, 0, 5, 4, 2, 7, 9)]
    assert data.name(7) == f"{tmp_path}/x.parquet[7]"
    assert data.image(3).shape == (3, 5, 6)


@pytest.mark.parametrize("inner", ["", "data"])
def test_a_folder_of_parquet_files_has_splits_by_name(tmp_path, inner) -> None:
    (tmp_path / inner).mkdir(exist_ok=True)
    pq.write_table(table(4), tmp_path / inner / "train-00000-of-00002.parquet", row_group_size=2)
    pq.write_table(table(3, first=4), tmp_path / inner / "train-00001-of-00002.parquet")
    pq.write_table(table(2, first=50), tmp_path / inner / "validation-00000-of-00001.parquet")
    splits = open_splits(tmp_path)
    assert {name: len(data) for name, data in splits.items()} == {"train": 7, "val": 2}
    assert [splits["train"].read(index) for index in range(7)] == [picture(n) for n in range(7)]
    assert splits["val"].read(1) == picture(51)
    assert splits["train"].name(5).endswith("train-00001-of-00002.parquet[1]")


def test_labels_may_be_words_and_images_plain_bytes(tmp_path) -> None:
    rows = table(6, words=True)
    rows = pa.table({"id": list(range(6)), "picture": [picture(n) for n in range(6)], "class": rows["label"]})
    pq.write_table(rows, tmp_path / "x.parquet")
    data = open_data(tmp_path / "x.parquet")
    assert data.labels == ("a", "b")
    assert data.targets.tolist() == [1, 0, -1, 1, 0, -1]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"label": [1]}, "columns label, but one of images is needed"),
        ({"a": [b"x"], "b": [b"x"]}, "one of images is needed"),
        ({"image": [b"x"], "label": [-5]}, "label -5"),
        ({"image": [b"x"], "label": [5_000_000]}, "label 5000000"),
        ({"image": [b"x"], "label": [0.5]}, "label of .* holds double"),
        ({"image": pa.array([], pa.binary())}, "no rows"),
    ],
)
def test_tables_that_do_not_fit_are_refused(tmp_path, columns, message) -> None:
    pq.write_table(pa.table(columns), tmp_path / "x.parquet")
    with pytest.raises(InputError, match=message):
        open_data(tmp_path / "x.parquet")


def test_two_columns_of_one_name_are_refused(tmp_path) -> None:
    images = pa.array([picture()])
    pq.write_table(pa.table([images, images], names=["image", "image"]), tmp_path / "x.parquet")
    with pytest.raises(InputError, match="2 columns called image"):
        open_data(tmp_path / "x.parquet")


@pytest.mark.parametrize(
    ("labels", "names", "targets"),
    [
        (pa.array(["b", None, "a", "b"]).dictionary_encode(), ("a", "b"), [1, -1, 0, 1]),
        (pa.array([2, None, 0, 1]), ("0", "1", "2"), [2, -1, 0, 1]),
    ],
)
def test_labels_may_be_categories_and_some_may_be_missing(tmp_path, labels, names, targets) -> None:
    pq.write_table(pa.table({"image": [picture(n) for n in range(4)], "label": labels}), tmp_path / "x.parquet")
    data = open_data(tmp_path / "x.parquet")
    assert (data.labels, data.targets.tolist()) == (names, targets)


def test_a_path_in_a_table_is_not_followed(tmp_path) -> None:
    rows = pa.table(
        {
            "image": pa.array(
                [{"bytes": None, "path": "/etc/hostname"}], pa.struct([("bytes", pa.binary()), ("path", pa.string())])
            ),
            "label": [0],
        }
    )
    pq.write_table(rows, tmp_path / "x.parquet")
    with pytest.raises(ImageError, match="not followed"):
        open_data(tmp_path / "x.parquet").image(0)


@pytest.mark.parametrize("keep", [0, 10, 300])
def test_a_damaged_parquet_file_is_named(tmp_path, keep) -> None:
    pq.write_table(table(4), tmp_path / "x.parquet")
    (tmp_path / "x.parquet").write_bytes((tmp_path / "x.parquet").read_bytes()[:keep])
    with pytest.raises(InputError, match=r"x\.parquet is damaged"):
        open_data(tmp_path / "x.parquet")


def test_tables_are_read_in_other_processes(tmp_path) -> None:
    pq.write_table(table(4), tmp_path / "x.parquet")
    for where in (tmp_path / "x.parquet", SAVED):
        data = open_data(where)
        first = data.read(1)
        other = pickle.loads(pickle.dumps(data.pictures))  # noqa: S301
        assert other.read(1) == first


def test_what_save_to_disk_wrote_is_read_without_their_library() -> None:
    splits = open_splits(SAVED)
    assert splits["train"].labels == splits["test"].labels == ("cat", "dog")
    assert splits["train"].targets.tolist() == [0, 1, 0, 1, 0]
    assert splits["test"].targets.tolist() == [0, 1]
    for split, first in (("train", 0), ("test", 100)):
        for number in range(len(splits[split])):
            assert splits[split].image(number)[:, 0, 0].tolist() == [number + first, 2 * number, 3]
    assert splits["test"].name(1) == f"{SAVED}/test/data-00000-of-00001.arrow[1]"


def test_one_saved_split_is_one_pile() -> None:
    data = open_data(SAVED / "train")
    assert (len(data), data.labels) == (5, ("cat", "dog"))


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("dataset_dict.json", '{"splits": ["../train"]}', "does not list splits"),
        ("dataset_dict.json", "[", "cannot be read as JSON"),
        ("dataset_dict.json", '{"splits": ["val"]}', "state.json is not there"),
        ("train/state.json", '{"_data_files": [{"filename": "../../x.arrow"}]}', "does not name arrow files"),
        ("train/state.json", '{"_data_files": [{"filename": "gone.arrow"}]}', "is not there"),
        ("train/state.json", '{"_data_files": 3}', "does not name arrow files"),
        ("train/state.json", '{"_indices_data_files": [1]}', "flatten_indices"),
        ("train/data-00000-of-00001.arrow", "no arrow", "is damaged"),
        ("train/data-00000-of-00001.arrow", "", "is damaged"),
    ],
)
def test_a_saved_data_set_that_does_not_fit_together_is_refused(tmp_path, file, text, message) -> None:
    folder = Path(shutil.copytree(SAVED, tmp_path / "saved"))
    (folder / file).write_text(text)
    with pytest.raises(InputError, match=message):
        open_data(folder)


def test_an_extra_that_is_not_installed_answers_with_the_command() -> None:
    with pytest.raises(ConfigError, match=r"reading it needs nowhere_to_be_found, .*pip install 'vitrail\[parquet\]'"):
        require("nowhere_to_be_found.inner", extra="parquet", purpose="reading it")
    assert require("os.path", extra="x", purpose="y") is os.path
