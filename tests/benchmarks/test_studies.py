"""All studies by one command: what is finished is read again, and claims are told apart by their tests."""

import sys

import pytest
from PIL import Image

from tests.benchmarks.programs import program
from tests.training.making import made_archive
from vitrail import Claim, Study, Variant
from vitrail.studies.catalogue import STUDIES
from vitrail.verbs.study_result import CellResult, StudyResult

studies = program("studies")
pytestmark = pytest.mark.usefixtures("unchecked")


def test_the_order_has_every_study() -> None:
    assert sorted(studies.ORDER) == sorted(STUDIES)


def test_claims_are_shown_reversed_or_open(tmp_path) -> None:
    names = ("good", "bad", "like good")
    values = {"good": (0.8, 0.81, 0.82), "bad": (0.6, 0.62, 0.61), "like good": (0.81, 0.8, 0.83)}
    claims = tuple(Claim(better=one, worse=other) for one, other in (("good", "bad"), ("bad", "good"), names[::2]))
    study = Study(name="made", question="Which?", variants=lambda *_: [], claims=claims, paper="Good.", source="Fig. 1")
    cells = [
        CellResult(variant=name, seed=seed, figures={"accuracy": value})
        for name, own in values.items()
        for seed, value in enumerate(own)
    ]
    result = StudyResult(
        study=study,
        variants=[Variant(name=name) for name in names],
        cells=tuple(cells),
        failed={},
        folder=tmp_path,
        steps=9,
    )
    found = "good above bad (+20.0 points, p < 0.001, 3 seeds)."
    assert studies.verdicts(result).startswith(f"Shown: {found} The reverse is shown: {found} Not shown: ")
    assert "Not shown: good above like good (-0.3 points" in studies.verdicts(result)
    text = studies.section(result, "vitrail study made")
    assert "| good | 81.00% +- 1.00 | - |" in text
    assert "Good. (Fig. 1) It gives no numbers" in text


@pytest.mark.slow
def test_two_tiny_studies_are_run_written_and_read_again(tmp_path, monkeypatch, capsys) -> None:
    data, out = made_archive(tmp_path / "made.npz"), tmp_path / "all"
    words = ["studies.py", str(out), "--data", str(data), "--steps", "4", "--seeds", "1", "--threads", "1"]
    monkeypatch.setattr(sys, "argv", [*words, "--only", "resolution", "pooling", "transfer"])
    studies.main()
    text = (out / "studies.md").read_text()
    assert "### resolution" in text
    assert "### pooling" in text
    assert "transfer" not in text  # without other data
    with Image.open(out / "study-pooling.png") as picture:
        assert picture.mode == "P"
    capsys.readouterr()
    studies.main()
    assert "of 6" not in capsys.readouterr().err
    assert (out / "studies.md").read_text() == text
