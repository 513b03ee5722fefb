"""The study of pre-training: one command, all parts, resumed after a stop."""

import argparse
import json
import sys
from pathlib import Path

import pytest

from tests.benchmarks.programs import program
from tests.training.making import made_archive

study = program("pretraining")
pytestmark = pytest.mark.usefixtures("unchecked")


def _arguments(**changes) -> argparse.Namespace:
    given = {
        "minutes": 30.0,
        "finetune_minutes": 5.0,
        "seeds": [0, 1, 2],
        "shares": [0.01, 0.1, 1.0],
        "other": "photos",
    }
    return argparse.Namespace(**given | {"parts": study.PARTS, "objectives": list(study.RULES)} | changes)


def test_the_plan_has_the_comparisons_of_the_paper_and_says_how_long_it_takes() -> None:
    plan = {start.name: start for start in study.starts(_arguments())}
    assert list(plan)[:4] == ["masked-patch", "mae", "dino", "moco"]
    assert plan["masked-patch, rate 0.15"].settings == {"objective.rate": 0.15}
    assert {plan[f"masked-patch, {name}"].settings["objective.target"] for name in ("downsized", "patch")} == {
        "downsized",
        "patch",
    }
    assert plan["masked-patch, a third of the time"].minutes == 10
    assert plan["supervised, other data"].objective is None
    assert len(plan) == 9
    # 8 starts of 30 minutes and one of 10, each fine-tuned 3 times for 5; 6 runs of 35 from scratch
    assert study.hours(_arguments()) == pytest.approx(3 * (8 * 30 + 10 + 9 * 3 * 5 + 6 * 35) / 60)
    assert len(study.starts(_arguments(other=None))) == 8
    assert study.scratch_rows(_arguments(parts=["objectives"])) == []
    assert study.scratch_rows(_arguments(parts=["scratch"])) == ["scratch, the rule"]


@pytest.mark.slow
def test_a_tiny_study_runs_whole_and_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    data, out = made_archive(tmp_path / "made.npz"), tmp_path / "study"
    words = ["pretraining.py", str(data), "--other", str(data), "--minutes", "0.02", "--finetune-minutes", "0.02"]
    words += ["--objectives", "mae", "--parts", "objectives", "rate", "supervised", "scratch", "encoder"]
    words += ["--seeds", "0", "--shares", "1"]
    words += ["--shots", "1", "--batch", "6", "--threads", "1", "--out", str(out)]
    monkeypatch.setattr(sys, "argv", words)
    study.main()
    contents = json.loads((out / "figures.json").read_text())
    figures = contents["figures"]
    assert len(figures) == 3 * 2 + 2
    assert contents["encoder"]["model.dim"] > 0
    assert all(0 <= value <= 1 for value in figures.values())
    table = capsys.readouterr().out
    assert "scratch, same encoder" in table.rpartition("seed 0")[2]
    assert f"{100 * figures['0/mae/all labels']:.2f}" in table.rpartition("seed 0")[2]
    models = {path: path.stat().st_mtime_ns for path in out.rglob("model.safetensors")}
    first = contents | {"figures": {name: figures[name] for name in list(figures)[:3]}}
    (out / "figures.json").write_text(json.dumps(first))
    study.main()
    assert json.loads((out / "figures.json").read_text()) == contents
    assert models == {path: path.stat().st_mtime_ns for path in out.rglob("model.safetensors")}
