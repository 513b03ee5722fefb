"""The result of a run: typed, written as JSON, and read back strictly."""

import json
from pathlib import Path

import pytest

from vitrail.base.errors import ConfigError, InputError, VitrailError
from vitrail.base.settings import to_dict
from vitrail.runs.result import Result, RunCost, read_result

COST = RunCost(parameters=1234, gmacs_per_image=0.5, seconds=2.0, images_per_second=64.0)
RESULT = Result(
    weights="best",
    steps=7,
    epochs=1.5,
    split="val",
    images=17,
    figures={"accuracy": 0.75, "loss": 0.6, "probe_accuracy": 0.5},
    cost=COST,
    bad_steps=(3,),
    skipped=("a.png",),
    digest="abc",
)


def test_a_result_comes_back_from_its_file_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "result.json").write_text(json.dumps(to_dict(RESULT)))
    assert read_result(tmp_path / "result.json") == RESULT


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"accuracy": 1.0}, "accuracy is not a setting"),
        ({"figures": {"accuracy": "good"}}, "figures.accuracy must be a number"),
        ({"weights": "worst"}, "one of last, averaged, best"),
        ({"cost": {"seconds": 1.0}}, "cost.parameters is missing"),
    ],
)
def test_a_file_that_is_not_a_result_is_refused(change: dict[str, object], sentence: str, tmp_path: Path) -> None:
    (tmp_path / "result.json").write_text(json.dumps(to_dict(RESULT) | change))
    with pytest.raises(ConfigError, match=sentence):
        read_result(tmp_path / "result.json")


def test_a_file_that_cannot_be_read_is_an_error_with_its_name(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    with pytest.raises(InputError, match=r"result\.json cannot be read"):
        read_result(path)
    for text in ("", "[", "[]", '{"weights": "last"}', "[" * 100_000, '{"steps": NaN}'):
        path.write_text(text)
        with pytest.raises(VitrailError, match=r"result\.json"):
            read_result(path)


def test_figures_stand_beside_the_rest_in_json() -> None:
    flat = RESULT.as_dict()
    assert (flat["accuracy"], flat["loss"], flat["probe_accuracy"], flat["images"]) == (0.75, 0.6, 0.5, 17)
    assert flat["cost"] == {"parameters": 1234, "gmacs_per_image": 0.5, "seconds": 2.0, "images_per_second": 64.0}
    assert list(flat)[:5] == ["weights", "steps", "epochs", "split", "images"]


def test_a_run_without_held_out_images_has_no_accuracy() -> None:
    result = Result(weights="last", steps=1, epochs=0.1, cost=COST)
    assert (result.accuracy, result.loss) == (None, None)
    assert not {"accuracy", "split", "images", "digest"} & result.as_dict().keys()
