"""What a finished run tells of itself."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.runs.test_conduct import _Heard
from tests.training.making import made_config, made_dataset, made_run
from vitrail.runs import mistakes
from vitrail.runs.conduct import conduct
from vitrail.runs.data import RunData
from vitrail.training.signals import StopSignal


def test_the_report_of_a_run_with_many_classes_has_its_accuracy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mistakes, "MOST_CLASSES_IN_MATRIX", 2)
    run = made_run(tmp_path / "run", made_config(steps=4))
    data = RunData(train=made_dataset(42), evaluation=made_dataset(13, seed=1, split="test"))
    result = conduct(replace(run, data=data), _Heard(), StopSignal())
    page = run.folder.report.read_text()
    assert f"test accuracy</dt><dd><b>{result.accuracy:.2%}</b>" in page
    assert "With 3 classes the matrix is too large to show." in page
    assert "All 3 classes, the worst first." in page
    assert "test <b>" in page  # beside the curves
    assert "validation" not in page
