import csv
import io
import json
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from vitrail import ConfigError, ImageError, InputError
from vitrail.prediction import writers
from vitrail.prediction.writers import Row, check_predictions, columns, write_rows

ROWS = [
    Row.of('a, "b"\n.jpg', ((1, 0.75), (0, 0.25)), ("ant", "bee, the")),
    Row.of("broken.png", ImageError("it is broken."), ("ant", "bee")),
    Row.of("odd \udcff", ((0, 1.5e-7), (1, 1e-12)), ("ant \ud800", "Ä")),
    Row.of("c.jpg", ((0, 1.0), (1, 0.0)), ("ant", "bee")),
]


def test_csv_is_read_back_by_python(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    write_rows(path, ROWS, top=2)
    header, *rows = csv.reader(io.StringIO(path.read_text(), newline=""))
    assert header == ["path", "label", "probability", "label_2", "probability_2", "error"] == columns(2)
    assert rows[0] == ['a, "b"\n.jpg', "bee, the", "0.75", "ant", "0.25", ""]
    assert rows[1] == ["broken.png", "", "", "", "", "it is broken."]
    assert rows[2] == ["odd \\udcff", "ant \\ud800", "1.5e-07", "Ä", "1e-12", ""]
    assert float(rows[2][4]) == 1e-12
    assert len(rows) == 4


def test_a_carriage_return_in_a_path_does_not_end_its_row(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    write_rows(path, [Row.of("a\rb.jpg", ((0, 1.0),), ("ant",)), ROWS[1]], top=1)
    _, *rows = csv.reader(io.StringIO(path.read_bytes().decode(), newline=""))
    assert rows == [["a\rb.jpg", "ant", "1.0", ""], ["broken.png", "", "", "it is broken."]]


def test_json_lines_are_read_back_by_python(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    write_rows(path, ROWS, top=2)
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert rows[0]["path"] == 'a, "b"\n.jpg'
    assert rows[0]["label"] == "bee, the"
    assert rows[0]["top"] == [{"label": "bee, the", "probability": 0.75}, {"label": "ant", "probability": 0.25}]
    assert rows[1] == {"path": "broken.png", "error": "it is broken."}
    assert rows[2]["probability"] == 1.5e-7
    assert len(rows) == 4


def test_parquet_is_read_back_by_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writers, "ROW_GROUP", 3)
    path = tmp_path / "x.parquet"
    write_rows(path, ROWS, top=2)
    table = pq.read_table(path)
    assert table.column_names == columns(2)
    assert pq.ParquetFile(path).num_row_groups == 2
    assert table["path"].to_pylist() == ['a, "b"\n.jpg', "broken.png", "odd \\udcff", "c.jpg"]
    assert table["label"].to_pylist() == ["bee, the", None, "ant \\ud800", "ant"]
    assert table["probability_2"].to_pylist() == [0.25, None, 1e-12, 0.0]
    assert table["error"].to_pylist() == [None, "it is broken.", None, None]


@pytest.mark.parametrize("suffix", writers.PREDICTIONS.suffixes)
def test_a_failure_in_the_middle_leaves_what_was_there(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"x{suffix}"
    path.write_text("before")

    def failing():
        yield ROWS[0]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_rows(path, failing(), top=2)
    assert path.read_text() == "before"
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


def test_an_output_that_cannot_be_is_refused_before_the_work(tmp_path: Path) -> None:
    def check(name: str) -> None:
        check_predictions(tmp_path / name, (), force=False)

    for name in ("x.json", "predictions"):
        with pytest.raises(ConfigError, match=r"a table of predictions; .* ends in \.csv or \.jsonl or \.parquet"):
            check(name)
    with pytest.raises(InputError, match="there is no folder"):
        check("nowhere/x.csv")
    (tmp_path / "x.csv").mkdir()
    with pytest.raises(InputError, match="is a folder"):
        check("x.csv")
    with pytest.raises(InputError, match="File name too long"):
        check("x" * 300 + ".csv")


def test_parquet_without_pyarrow_is_the_command_that_installs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(ConfigError, match=r"pip install 'vitrail\[parquet\]'"):
        check_predictions(tmp_path / "x.parquet", (), force=False)
