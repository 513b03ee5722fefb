import pickle
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vitrail import InputError
from vitrail.data.index import NamesBuilder, is_index, map_arrays, names_of, write_arrays


@given(st.lists(st.binary(max_size=20), max_size=30), st.randoms())
def test_names_are_what_was_put_in_and_can_be_taken_in_any_order(given_names, rand: random.Random) -> None:
    names = names_of(given_names)
    assert list(names) == given_names
    rows = [rand.randrange(len(given_names)) for _ in range(len(given_names))]
    assert list(names.take(np.array(rows, np.int64))) == [given_names[row] for row in rows]


def test_a_row_that_is_not_there_is_an_index_error() -> None:
    names = names_of([b"a"])
    for row in (-1, 1):
        with pytest.raises(IndexError, match="of 1 names"):
            names[row]


def test_many_names_take_no_object_each() -> None:
    builder = NamesBuilder()
    for number in range(100_000):
        builder.add(b"%07d.jpg" % number)
    names = builder.done()
    assert names.blob.nbytes + names.offsets.nbytes == 11 * 100_000 + 8 * 100_001
    assert len(pickle.dumps(names)) < 2_000_000


def test_names_that_are_no_utf8_are_shown_with_escapes() -> None:
    assert names_of([b"caf\xe9.jpg"]).text(0) == "caf\\xe9.jpg"


@given(
    st.lists(
        st.tuples(st.sampled_from(["u1", "i1", "i2", "i4", "i8"]), st.lists(st.integers(0, 100), max_size=50)),
        max_size=5,
    )
)
def test_arrays_come_back_from_a_file_as_they_were(tmp_path_factory, columns) -> None:
    path = tmp_path_factory.mktemp("index") / "x.index"
    arrays = {f"array{at}": np.array(values, kind) for at, (kind, values) in enumerate(columns)}
    write_arrays(path, {"a": 1, "ä": ["ö"]}, arrays)
    described, found = map_arrays(path)
    assert is_index(path)
    assert described == {"a": 1, "ä": ["ö"]}
    assert list(found) == list(arrays)
    for name, values in arrays.items():
        assert found[name].dtype == values.dtype
        np.testing.assert_array_equal(found[name], values)


def test_arrays_of_a_file_are_mapped_not_read(tmp_path) -> None:
    write_arrays(tmp_path / "x", {}, {"a": np.arange(1000)})
    found = map_arrays(tmp_path / "x")[1]["a"]
    assert isinstance(found, np.memmap)
    assert not found.flags.writeable


@given(st.data())
def test_a_damaged_index_is_refused_or_read_and_nothing_else(tmp_path_factory, data) -> None:
    path = tmp_path_factory.mktemp("index") / "x"
    write_arrays(path, {"what": "ever"}, {"a": np.arange(20), "b": np.arange(7, dtype=np.int8)})
    whole = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        whole[data.draw(st.integers(0, 200))] = data.draw(st.integers(0, 255))
    path.write_bytes(whole[: data.draw(st.integers(0, len(whole)))])
    try:
        map_arrays(path)
    except InputError as error:
        assert str(path) in str(error)  # noqa: PT017
