"""A series: finished cells are kept, diverged ones are results, and one table tells of all of them."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from tests.training.making import StopAfter, made_config, made_run
from vitrail.base.ranks import Ranks
from vitrail.runs.config import RunConfig
from vitrail.runs.folder import RunFolder
from vitrail.runs.series import Cell, Row, Series, Table, read_divergence
from vitrail.training.classification import ClassificationConfig
from vitrail.training.endings import StoppedError
from vitrail.training.signals import StopSignal


class _Listening:
    def __init__(self, heard: list[str]) -> None:
        self.heard = heard

    def start(self, step: int) -> None:
        self.heard.append(f"start {step}")

    def note(self, sentence: str) -> None:
        self.heard.append(sentence)

    def __call__(self, step: int, values: dict[str, float]) -> None: ...


def _series(path: Path, heard: list[str] | None = None, stop: StopSignal | None = None) -> Series:
    @contextmanager
    def watch(_: RunConfig, words: str) -> Iterator[_Listening]:
        listening = _Listening([] if heard is None else heard)
        listening.note(words)
        yield listening

    return Series(path=path, ranks=Ranks(), watch=watch, stop=stop or StopSignal())


def _cells(path: Path, *rates: float) -> list[Cell]:
    config = made_config(steps=4, objective=ClassificationConfig())
    config = replace(config, optimizer=replace(config.optimizer, name="sgd", clip_norm=None))
    runs = {rate: replace(config, schedule=replace(config.schedule, peak=rate, warmup_steps=0)) for rate in rates}
    return [
        Cell(name=f"rate {rate:g}", run=made_run(path / f"{rate:g}", run), varied={"rate": rate}, notes=("mind",))
        for rate, run in runs.items()
    ]


@pytest.fixture(scope="module")
def straight(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("series")
    _series(path).carry_out(_cells(path, 0.01, 1e30, 0.02))
    return path


def _times(path: Path) -> dict[Path, int]:
    return {file: file.stat().st_mtime_ns for file in path.rglob("*") if file.is_file()}


def test_the_table_has_a_row_for_each_cell_with_the_figures_of_its_run(straight: Path) -> None:
    rows = json.loads((straight / "series.json").read_text())["rows"]
    assert [(row["cell"], row["folder"], row["varied"]) for row in rows] == [
        ("rate 0.01", "0.01", {"rate": 0.01}),
        ("rate 1e+30", "1e+30", {"rate": 1e30}),
        ("rate 0.02", "0.02", {"rate": 0.02}),
    ]
    for row in (rows[0], rows[2]):
        result = RunFolder(path=straight / row["folder"]).read_result().as_dict()
        assert {name: row[name] for name in ("steps", "split", "images", "accuracy", "loss")} == {
            name: result[name] for name in ("steps", "split", "images", "accuracy", "loss")
        }
        assert row["diverged"] is None


def test_a_diverged_cell_is_a_row_with_its_step_and_reason(straight: Path) -> None:
    row = json.loads((straight / "series.json").read_text())["rows"][1]
    record = json.loads((straight / "1e+30" / "diverged.json").read_text())
    assert (row["steps"], row["diverged"], row["accuracy"]) == (record["step"], record["reason"], None)
    assert "not finite 3 times in a row" in row["diverged"]


def test_nothing_is_trained_or_written_again(straight: Path) -> None:
    heard: list[str] = []
    before = _times(straight)
    table = _series(straight, heard, StopAfter(1)).carry_out(_cells(straight, 0.01, 1e30, 0.02))
    assert _times(straight) == before
    assert not [sentence for sentence in heard if sentence.startswith("start")]
    assert [row.cell for row in table.finished] == ["rate 0.01", "rate 0.02"]
    assert [row.cell for row in table.diverged] == ["rate 1e+30"]


def test_a_part_that_is_run_again_leaves_the_rows_of_the_others(straight: Path) -> None:
    before = (straight / "series.json").read_bytes()
    _series(straight).carry_out(_cells(straight, 0.02))
    assert (straight / "series.json").read_bytes() == before


def test_who_watches_hears_which_cell_it_is_and_what_came_of_it(straight: Path) -> None:
    heard: list[str] = []
    table = _series(straight, heard).carry_out(_cells(straight, 0.01, 1e30))
    assert heard == [
        "rate 0.01, 1 of 2",
        "mind",
        f"rate 0.01, 1 of 2: {table.rows[0].accuracy:.2%}.",
        "rate 1e+30, 2 of 2",
        "mind",
        f"rate 1e+30, 2 of 2: diverged at step {table.rows[1].steps}.",
    ]


def test_a_stopped_series_resumes_and_ends_with_the_same_table(straight: Path, tmp_path: Path) -> None:
    with pytest.raises(StoppedError):
        _series(tmp_path, stop=StopAfter(9)).carry_out(_cells(tmp_path, 0.01, 1e30, 0.02))
    assert len(json.loads((tmp_path / "series.json").read_text())["rows"]) < 3
    _series(tmp_path).carry_out(_cells(tmp_path, 0.01, 1e30, 0.02))
    ours, theirs = (json.loads((path / "series.json").read_text()) for path in (tmp_path, straight))
    for row in (*ours["rows"], *theirs["rows"]):
        row["diverged"] = row["diverged"] is not None  # the reason names the folder
    assert ours == theirs


def test_other_settings_do_not_inherit_a_divergence(straight: Path) -> None:
    (cell,) = _cells(straight, 1e30)
    assert read_divergence(cell.run) is not None
    assert read_divergence(replace(cell.run, config=replace(cell.run.config, seed=99))) is None


def test_a_table_reads_as_text() -> None:
    rows = (
        Row(cell="one", folder="a", varied={"rate": 0.01}, steps=4, split="val", images=9, accuracy=0.5, loss=1.25),
        Row(cell="two", folder="b", varied={"rate": 1e30, "seed": 3}, steps=2, diverged="it was"),
        Row(cell="three", folder="c", varied={"seed": 4}, steps=4),
    )
    assert str(Table(rows=rows)).splitlines() == [
        "cell   rate   seed  accuracy            loss    images",
        "one    0.01   -     50.00%              1.2500  9",
        "two    1e+30  3     diverged at step 2  -       -",
        "three  -      4     not measured        -       -",
    ]
