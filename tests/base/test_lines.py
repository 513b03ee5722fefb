"""JSON lines: what happens to one line concerns no other."""

from pathlib import Path

import pytest

from vitrail.base.errors import InputError, WriteError
from vitrail.base.lines import append_row, read_lines, read_rows, write_rows

BAD = [b"{", b"", b"[1]", b"7", b"\xff\xfe", b'{"a": NaN}', b'{"a": Infinity}', b"[" * 50_000, b"\0" * 20]


@pytest.mark.parametrize("bad", BAD)
def test_a_damaged_line_takes_no_other_with_it(bad: bytes, tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b'{"a": 1}\n' + bad + b'\n{"a": 2}\n{"a": 3}\n')
    lines = read_lines(path)
    assert [row["a"] for row in lines.rows] == [1, 2, 3]
    assert lines.damaged == [2]


def test_a_file_with_damaged_lines_is_kept_under_a_name_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    for number in (1, 2):
        path.write_bytes(b'{"a": 1}\n{\n{"a": 2}\n' * number)
        (note,) = read_lines(path).set_aside(path)
        copy = tmp_path / f"rows.jsonl.damaged-{number}"
        assert copy.read_bytes() == path.read_bytes()
        assert f"{path} is damaged in line 2" in note
        assert copy.name in note
    assert read_lines(tmp_path / "none.jsonl").set_aside(path) == []


@pytest.mark.parametrize("cut", range(1, 11))
def test_a_line_that_a_kill_has_cut_off_is_not_damage_and_does_not_spoil_the_next(cut: int, tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    append_row(path, {"a": 1})
    append_row(path, {"b": "two"})
    path.write_bytes(path.read_bytes()[:-cut])
    whole = [{"a": 1}, {"b": "two"}] if cut == 1 else [{"a": 1}]
    assert read_lines(path).rows == whole
    assert read_lines(path).damaged == []
    append_row(path, {"c": 3}, sync=True)
    assert read_lines(path).rows == [*whole, {"c": 3}]
    assert read_lines(path).damaged == []


def test_rows_are_written_as_they_are_appended(tmp_path: Path) -> None:
    rows = [{"a": 1.5}, {"b": None}]
    for row in rows:
        append_row(tmp_path / "one", row)
    write_rows(tmp_path / "other", rows)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "other").read_bytes()
    assert read_rows(tmp_path / "one") == rows


def test_what_is_not_finite_is_never_written(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        append_row(tmp_path / "rows", {"a": float("nan")})
    assert not (tmp_path / "rows").read_bytes()


def test_what_cannot_be_read_or_written_is_an_error_with_its_name(tmp_path: Path) -> None:
    assert read_rows(tmp_path / "none") == []
    with pytest.raises(InputError, match=f"{tmp_path} is a folder"):
        read_rows(tmp_path)
    with pytest.raises(WriteError, match=f"{tmp_path} could not be written"):
        append_row(tmp_path, {})
