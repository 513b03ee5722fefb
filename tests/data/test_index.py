import pickle
import random

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import load_file

from vitrail import InputError
from vitrail.base.container import write_container
from vitrail.base.tensors import from_tensors
from vitrail.data.index import is_index, map_arrays, write_arrays
from vitrail.data.names import NamesBuilder, names_of


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
    names = builder.build()
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
    assert set(found) == set(arrays)
    for name, values in arrays.items():
        assert found[name].dtype == values.dtype
        np.testing.assert_array_equal(found[name], values)


def test_arrays_of_a_file_are_mapped_not_read(tmp_path) -> None:
    write_arrays(tmp_path / "x", {}, {"a": np.arange(1000)})
    found = map_arrays(tmp_path / "x")[1]["a"]
    assert not found.flags.owndata
    assert not found.flags.writeable


def test_an_index_is_a_safetensors_file(tmp_path) -> None:
    write_arrays(tmp_path / "x", {"a": 1}, {"b": np.arange(5)})
    stored = load_file(tmp_path / "x")
    assert stored["b"].tolist() == [0, 1, 2, 3, 4]
    assert bytes(stored["described"]) == b'{"a": 1}'


def test_arrays_that_may_not_be_written_or_lie_apart_are_saved_too(tmp_path) -> None:
    write_arrays(tmp_path / "x", {}, {"a": np.arange(10, dtype=">i4")[::3]})
    write_arrays(tmp_path / "y", *map_arrays(tmp_path / "x"))
    assert (tmp_path / "y").read_bytes() == (tmp_path / "x").read_bytes()


def test_an_index_of_the_first_format_is_refused_in_a_sentence(tmp_path) -> None:
    (tmp_path / "x").write_bytes(b"VITRAIL INDEX 1\n" + bytes(100))
    assert not is_index(tmp_path / "x")
    with pytest.raises(InputError, match=r"is not an index of images; make one with vitrail\.data\.save_index\.$"):
        map_arrays(tmp_path / "x")


@pytest.mark.parametrize(
    ("tensors", "reason"),
    [
        ({"a": torch.ones(3)}, "rows of whole numbers"),
        ({"a": torch.ones(3, 3, dtype=torch.int32)}, "rows of whole numbers"),
        ({"a": torch.arange(3)}, "its description cannot be read"),
        ({"described": torch.tensor([255, 0], dtype=torch.uint8)}, "its description cannot be read"),
        ({"described": torch.tensor(list(b"[1]"), dtype=torch.uint8)}, "its description cannot be read"),
        ({"described": torch.tensor(list(b"[" * 100_000), dtype=torch.uint8)}, "its description cannot be read"),
    ],
)
def test_a_container_with_something_else_is_refused(tensors, reason: str, tmp_path) -> None:
    with (tmp_path / "x").open("wb") as file:
        write_container(file, from_tensors(tensors, "x"), {"vitrail.index": "2"}, digest=True)
    with pytest.raises(InputError, match=reason):
        map_arrays(tmp_path / "x")


def test_a_bit_that_flips_is_noticed(tmp_path) -> None:
    path = tmp_path / "x"
    write_arrays(path, {}, {"a": np.arange(20)})
    whole = bytearray(path.read_bytes())
    whole[-30] ^= 1
    path.write_bytes(whole)
    with pytest.raises(InputError, match="its digest is another; make the index again"):
        map_arrays(path)


@given(st.data())
def test_a_damaged_index_is_refused_or_read_and_nothing_else(tmp_path_factory, data) -> None:
    path = tmp_path_factory.mktemp("index") / "x"
    write_arrays(path, {"what": "ever"}, {"a": np.arange(20), "b": np.arange(7, dtype=np.int8)})
    whole = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        whole[data.draw(st.integers(0, 450))] = data.draw(st.integers(0, 255))
    path.write_bytes(whole[: data.draw(st.integers(0, len(whole)))])
    try:
        map_arrays(path)
    except InputError as error:
        assert str(path) in str(error)  # noqa: PT017
