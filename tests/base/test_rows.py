import csv
import io
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st

from vitrail.base.rows import guarded, unguarded, write_csv

CELLS = st.text(st.sampled_from("ab1,;\"' =+-@\t\r\nÄ"), max_size=6)


def _csv(rows: list[list[str | float | None]]) -> bytes:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "x.csv"
        with path.open("wb") as file:
            write_csv(file, rows)
        return path.read_bytes()


@given(st.lists(st.lists(CELLS, min_size=2, max_size=3), max_size=5))
def test_any_text_is_read_back_by_python(rows: list[list[str | float | None]]) -> None:
    read = csv.reader(io.StringIO(_csv(rows).decode(), newline=""))
    assert [[unguarded(cell) for cell in row] for row in read] == rows


@given(CELLS)
def test_no_text_but_a_number_begins_as_a_formula(cell: str) -> None:
    shown = guarded(cell)
    assert unguarded(shown) == cell
    assert not shown.startswith(("=", "+", "-", "@", "\t", "\r")) or float(shown) == float(cell)


def test_numbers_and_gaps_are_plain_and_odd_text_is_written_out() -> None:
    rows = [["a", 0.5, None], ["\udcff", 1e-12, "b"], ["c\rd", 0.25, None]]
    assert _csv(rows) == b'a,0.5,\n\\udcff,1e-12,b\n"c\rd","0.25",""\n'
