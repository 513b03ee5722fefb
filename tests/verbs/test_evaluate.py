import csv
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn import metrics

import vitrail
from tests.runtime.test_engine import Means
from tests.training.making import CLASSES
from tests.verbs.making import data_file, model_file, small_model
from vitrail.cli.main import main
from vitrail.verbs.evaluate import evaluate


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return model_file(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return data_file(tmp_path_factory.mktemp("data"))


def test_the_figures_are_those_of_scikit_learn(model: Path, data: Path) -> None:
    score = evaluate(model, data, resamples=100)
    network, images = vitrail.load(model), vitrail.data.open(data, split="test")
    inputs = network.info.preprocessing([images.read(index) for index in range(len(images))])
    predicted = network(inputs).argmax(1).numpy()
    assert score.accuracy == metrics.accuracy_score(images.targets, predicted)
    np.testing.assert_array_equal(score.confusion, metrics.confusion_matrix(images.targets, predicted, labels=range(3)))
    assert score.labels == CLASSES
    assert score.figures["accuracy"].low <= score.accuracy <= score.figures["accuracy"].high
    assert score.digest == network.info.digest


@pytest.mark.parametrize("kind", ["path", "model", "classifier", "data set"])
def test_a_file_a_model_a_classifier_and_an_open_data_set_give_the_same(kind: str, model: Path, data: Path) -> None:
    wanted = evaluate(model, data, resamples=100)
    network = {
        "path": str(model),
        "model": vitrail.load(model),
        "classifier": vitrail.Classifier.load(model, device="cpu"),
        "data set": model,
    }[kind]
    images = vitrail.data.open(data, split="test") if kind == "data set" else str(data)
    score = evaluate(network, images, resamples=100)
    assert score.figures == wanted.figures
    np.testing.assert_array_equal(score.confusion, wanted.confusion)


def test_the_dictionary_is_what_the_command_prints(
    model: Path, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table, page = tmp_path / "all.csv", tmp_path / "page.html"
    words = ["--json", "--bootstrap", "100", "--csv", str(table), "--html", str(page), "--device", "cpu"]
    assert main(["evaluate", str(model), str(data), *words]) == 0
    printed = json.loads(capsys.readouterr().out)
    first, html = table.read_text(), page.read_text()
    score = evaluate(model, data, resamples=100, csv=table, html=page)
    assert json.loads(json.dumps(score.to_dict())) == printed
    assert (table.read_text(), page.read_text()) == (first, html)
    assert len(list(csv.DictReader(first.splitlines()))) == 10


def test_a_model_of_half_precision_is_measured_in_float32_and_stays_as_it_was(data: Path) -> None:
    half = small_model().bfloat16().train()
    score = evaluate(half, data, labels=CLASSES, resamples=100)
    assert half.training
    assert next(half.parameters()).dtype == torch.bfloat16
    full = evaluate(half.float(), data, labels=CLASSES, resamples=100)
    assert score.figures == full.figures


def test_an_engine_of_another_kind_is_measured_with_given_labels(data: Path) -> None:
    score = evaluate(Means(), data, labels=CLASSES, resamples=100)
    images = vitrail.data.open(data, split="test")
    pixels = Means.preprocessing([images.read(index) for index in range(len(images))]).double().numpy()
    predicted = (pixels.mean((2, 3)) @ Means.head).argmax(1)
    np.testing.assert_array_equal(score.answers.predicted, predicted)
    assert score.model == "the engine"


def test_other_preprocessing_gives_other_answers(data: Path) -> None:
    model = small_model()
    darker = vitrail.Preprocessing(image_size=(8, 8), mean=(0.9,) * 3)
    one, other = (
        evaluate(model, data, labels=CLASSES, preprocessing=pixels, resamples=100).figures["loss"].value
        for pixels in (vitrail.Preprocessing(image_size=(8, 8)), darker)
    )
    assert one != other


def test_notes_go_to_the_caller_and_into_the_result(data: Path) -> None:
    heard: list[str] = []
    score = evaluate(small_model(), data, labels=CLASSES, resamples=100, note=heard.append)
    assert list(score.notes) == heard
    assert "how images become its input" in heard[0]


def test_the_result_reads_in_a_terminal_and_in_a_notebook(model: Path, data: Path) -> None:
    score = evaluate(model, data, resamples=100)
    assert f"{score.accuracy:.2%}" in repr(score)
    assert f"{model} on the test split of {data}" in repr(score)
    assert "10 images, scored over 3 classes." in repr(score)
    shown = score._repr_html_()
    assert f"{score.accuracy:.2%}" in shown


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"image_size": 16}, "image_size is for models that are read from a file"),
        ({"pickle": True}, "pickle is for models"),
        ({"threads": 0}, "threads is 0"),
        ({"labels": ["one"]}, "1 labels were given for 3 classes"),
        ({"split": "tset"}, "no tset. Did you mean test?"),
        ({"class_map": {}, "real": [[0]]}, "leave one out"),
        ({"csv": "all.txt"}, "ends in .csv"),
        ({"resamples": 3}, "resamples` is 3"),
    ],
)
def test_what_cannot_be_is_one_sentence(settings: dict[str, object], sentence: str, data: Path) -> None:
    with pytest.raises(vitrail.VitrailError) as refused:
        evaluate(small_model(), data, **{"labels": CLASSES} | settings)
    assert sentence in str(refused.value)
    assert "--" not in str(refused.value)


def test_settings_of_a_classifier_are_its_own(model: Path, data: Path) -> None:
    with pytest.raises(vitrail.ConfigError, match="has its own"):
        evaluate(vitrail.Classifier.load(model, device="cpu"), data, preprocessing=vitrail.Preprocessing())
    with pytest.raises(vitrail.ConfigError, match="yet to be opened"):
        evaluate(model, vitrail.data.open(data), split="test")
