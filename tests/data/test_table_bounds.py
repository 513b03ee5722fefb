"""Parquet and Arrow files that claim too much: refused before memory is taken, or a damaged offset is followed."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.data.making import picture
from vitrail import InputError
from vitrail.data import open as open_data

arrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")


def saved(folder: Path, table, **options) -> Path:
    """A data set as `save_to_disk` lays it out, with one arrow file; return that file."""
    folder.mkdir()
    (folder / "state.json").write_text(json.dumps({"_data_files": [{"filename": "x.arrow"}]}))
    with arrow.ipc.new_stream(folder / "x.arrow", table.schema, options=arrow.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table)
    return folder / "x.arrow"


def rows(count: int = 4):
    return arrow.table({"image": [picture(number) for number in range(count)], "label": list("abcd" * count)[:count]})


@pytest.mark.parametrize("value", [2**31 - 1, -1, 10**6])
def test_an_arrow_file_whose_offsets_lead_out_of_it_is_refused(tmp_path, value) -> None:
    file = saved(tmp_path / "saved", rows())
    data = file.read_bytes()
    lengths = [len(picture(number)) for number in range(4)]
    offsets = np.cumsum([0, *lengths]).astype("<i4").tobytes()
    assert data.count(offsets) == 1
    wrong = offsets[:8] + np.array([value], "<i4").tobytes() + offsets[12:]
    file.write_bytes(data.replace(offsets, wrong))
    with pytest.raises(InputError, match=r"x\.arrow is damaged"):
        open_data(tmp_path / "saved")


def test_an_arrow_file_whose_indices_lead_out_of_its_dictionary_is_refused(tmp_path) -> None:
    labels = arrow.DictionaryArray.from_arrays(arrow.array([0, 1, 1, 0], arrow.int32()), arrow.array(["cat", "dog"]))
    file = saved(tmp_path / "saved", arrow.table({"image": [picture()] * 4, "label": labels}))
    assert open_data(tmp_path / "saved").targets.tolist() == [0, 1, 1, 0]
    data, indices = file.read_bytes(), np.array([0, 1, 1, 0], "<i4").tobytes()
    assert data.count(indices) == 1
    file.write_bytes(data.replace(indices, np.array([0, 1, 10**6, 0], "<i4").tobytes()))
    with pytest.raises(InputError, match=r"x\.arrow is damaged"):
        open_data(tmp_path / "saved")


@pytest.mark.parametrize("dictionary", [False, True])
def test_a_compressed_arrow_file_is_refused_before_it_is_unpacked(tmp_path, dictionary) -> None:
    labels = arrow.array(["a", "b"] * 2).dictionary_encode() if dictionary else arrow.array([0, 1, 0, 1])
    table = arrow.table({"image": [picture()] * 4, "label": labels})
    saved(tmp_path / "packed", table, compression="zstd")
    with pytest.raises(InputError, match=r"x\.arrow is compressed, and is not read; save the data set again"):
        open_data(tmp_path / "packed")
    saved(tmp_path / "plain", table)
    assert open_data(tmp_path / "plain").targets.tolist() == [0, 1, 0, 1]


def test_labels_without_and_in_dictionaries_mean_the_same(tmp_path) -> None:
    words = ["dog", None, "cat", "dog"]
    for number, labels in enumerate((arrow.array(words), arrow.array(words).dictionary_encode())):
        table = arrow.table({"image": [picture()] * 4, "label": labels})
        parquet.write_table(table, tmp_path / f"{number}.parquet", row_group_size=3)
        saved(tmp_path / f"{number}", table)
        for where in (tmp_path / f"{number}.parquet", tmp_path / f"{number}"):
            data = open_data(where)
            assert (data.labels, data.targets.tolist()) == (("cat", "dog"), [1, -1, 0, 1])
            assert [data.read(row) for row in range(4)] == [picture()] * 4


def test_a_parquet_file_of_far_more_rows_than_it_has_bytes_is_refused(tmp_path, monkeypatch) -> None:
    table = arrow.table({"image": arrow.array([b""] * 200_000), "label": arrow.array(np.zeros(200_000, np.int8))})
    parquet.write_table(table, tmp_path / "x.parquet")
    assert (tmp_path / "x.parquet").stat().st_size < 8000
    assert len(open_data(tmp_path / "x.parquet")) == 200_000
    monkeypatch.setenv("VITRAIL_LIMIT_UNPACKED_BYTES", "1000000")
    with pytest.raises(InputError, match=r"would unpack to 12\.21 MiB, .* VITRAIL_LIMIT_ARRAY_GROWTH"):
        open_data(tmp_path / "x.parquet")


def test_a_label_as_long_as_a_book_is_refused(tmp_path) -> None:
    table = arrow.table({"image": [picture()] * 2, "label": ["x" * 10**6, "y"]})
    parquet.write_table(table, tmp_path / "x.parquet")
    with pytest.raises(InputError, match=r"a label of 1,000,000 letters, but a class name has at most 4,096"):
        open_data(tmp_path / "x.parquet")


PEAK = """
import resource, sys
from vitrail.data import open
data = open(sys.argv[1])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
assert len(data.read(0)) == len(data.read(149)) == 2**20
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.parametrize("inside", [False, True])
def test_a_large_value_that_is_repeated_is_in_memory_once(tmp_path, inside) -> None:
    large = np.random.default_rng(0).bytes(2**20)
    images = arrow.array([large] * 150, arrow.large_binary())
    column = arrow.StructArray.from_arrays([images], ["bytes"]) if inside else images
    table = arrow.table({"image": column, "label": arrow.array([0] * 150)})
    parquet.write_table(table, tmp_path / "x.parquet", dictionary_pagesize_limit=2**30)
    del table, column, images
    assert (tmp_path / "x.parquet").stat().st_size < 2 * 2**20
    command = [sys.executable, "-c", PEAK, str(tmp_path / "x.parquet")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert int(done.stdout) < 50 << 10  # KiB: a few copies of one, not the 150 MiB of all
