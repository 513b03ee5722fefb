import json
from pathlib import Path

import pytest

import vitrail
from tests.runtime.test_engine import Means
from tests.verbs.making import data_file, model_file, small_model
from vitrail.cli.main import main
from vitrail.verbs.fewshot import fewshot


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return model_file(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return data_file(tmp_path_factory.mktemp("data"))


def test_the_dictionary_is_what_the_command_prints(model: Path, data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--shots", "1", "3", "all", "--methods", "ridge", "neighbours", "--no-cache", "--json", "--device", "cpu"]
    assert main(["fewshot", str(model), str(data), *words]) == 0
    printed = json.loads(capsys.readouterr().out)
    found = fewshot(model, data, shots=[1, 3, "all"], methods=["ridge", "neighbours"], cache=False)
    assert json.loads(json.dumps(found.to_dict())) == printed
    assert [score.shots for score in found.scores] == [1, 1, 3, 3, None, None]


def test_a_model_in_memory_and_open_splits_give_the_same_as_files(model: Path, data: Path) -> None:
    loaded = vitrail.load(model).train()
    found = fewshot(loaded, vitrail.data.open_splits(data), shots=[2], cache=False)
    assert loaded.training
    assert found.scores == fewshot(model, data, shots=[2], cache=False).scores


def test_a_model_without_a_head_and_an_engine_have_features_too(data: Path) -> None:
    for network in (small_model(num_classes=0), Means()):
        (score,) = fewshot(network, data, shots=[1], seeds=4, cache=False).scores
        assert len(score.accuracies) == 4
        assert score.images == 3


def test_features_are_kept_below_the_folder_that_is_named(model: Path, data: Path, tmp_path: Path) -> None:
    first = fewshot(model, data, shots=[1], cache=tmp_path / "kept")
    assert len(list((tmp_path / "kept").iterdir())) == 2
    assert fewshot(model, data, shots=[1], cache=tmp_path / "kept").scores == first.scores


def test_the_table_reads_in_a_terminal_and_in_a_notebook(model: Path, data: Path, tmp_path: Path) -> None:
    found = fewshot(model, data, shots=[1, "all"], seeds=2, cache=False, plot=tmp_path / "shots.svg")
    (shots, images, cell), (every, _, alone) = found.table
    mean, spread = found.scores[0].mean, found.scores[0].spread
    assert (shots, images, cell) == ("1", "3", f"{100 * mean:.2f} +- {100 * spread:.2f}")
    assert (every, alone) == ("all", f"{100 * found.scores[1].mean:.2f}")
    for shown in (repr(found), found._repr_html_()):
        assert cell in shown
        assert "over 2 draws" in shown
    assert (tmp_path / "shots.svg").read_text().startswith("<?xml")


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"shots": []}, "shots is empty"),
        ({"shots": [0]}, "shots is 0"),
        ({"shots": [21]}, "fewer than 21 images"),
        ({"l2": [0.0]}, "`l2` is 0.0"),
        ({"probe_c": -1.0}, "`probe_c` is -1.0"),
        ({"neighbours": 0}, "neighbours is 0"),
        ({"methods": []}, "`methods` is empty"),
        ({"plot": "shots.pdf"}, "ends in .svg or .png"),
        ({"num_heads": 3}, "num_heads is for models that are read from a file"),
    ],
)
def test_what_cannot_be_is_one_sentence(settings: dict[str, object], sentence: str, data: Path) -> None:
    with pytest.raises(vitrail.VitrailError) as refused:
        fewshot(small_model(), data, **{"shots": [1], "cache": False} | settings)
    assert sentence in str(refused.value)
    assert "--" not in str(refused.value)
