"""The end of a run: the page of a real run against its files and against answers worked out by hand."""

import json
from xml.etree.ElementTree import Element

import numpy as np
import pytest
import torch
from sklearn.metrics import confusion_matrix

from tests.report.pages import curve_points, figure, pairs, part, read, settings, tables, words
from tests.training.making import CLASSES, made_config, made_run
from vitrail.base.lines import read_rows
from vitrail.base.settings import flatten
from vitrail.checkpoint.files import load
from vitrail.data.dataset import Dataset
from vitrail.runs.conduct import conduct
from vitrail.runs.train import Run
from vitrail.training.signals import StopSignal


class _Silent:
    def start(self, step: int) -> None: ...

    def note(self, sentence: str) -> None: ...

    def __call__(self, step: int, values: dict[str, float]) -> None: ...


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    made = made_run(tmp_path_factory.mktemp("runs") / "run", made_config(steps=12, evaluate_every=3))
    conduct(made, _Silent(), StopSignal())
    return made


def _held(run: Run) -> Dataset:
    assert run.data.evaluation is not None
    return run.data.evaluation


@pytest.fixture(scope="module")
def page(run: Run) -> Element:
    return read(run.folder.report.read_text())


@pytest.fixture(scope="module")
def chances(run: Run) -> np.ndarray:
    """Probabilities of the held-out images by the model file alone: pixels from -1 to 1, through, softmax."""
    images = torch.from_numpy(_held(run).pictures.images)  # type: ignore[attr-defined]
    with torch.no_grad():
        logits = load(run.folder.model).eval()(images.permute(0, 3, 1, 2).float() / 127.5 - 1)
    return logits.double().softmax(dim=1).numpy()


@pytest.mark.parametrize(
    ("heading", "role", "key"),
    [
        ("Loss", "first", "loss"),
        ("Loss", "second", "val_loss"),
        ("Accuracy", "second", "val_accuracy"),
        ("Learning rate", "third", "learning_rate"),
        ("Gradient norm", "fourth", "gradient_norm"),
    ],
)
def test_the_page_draws_the_rows_of_the_run(heading: str, role: str, key: str, run: Run, page: Element) -> None:
    rows = [json.loads(line) for line in (run.folder.path / "metrics.jsonl").read_text().splitlines()]
    wanted = np.array([(row["step"], row[key]) for row in rows if key in row])
    assert wanted[:, 0].tolist() == [3, 6, 9, 12]
    found = curve_points(figure(page, heading), role)
    np.testing.assert_allclose(found[:, 0], wanted[:, 0], atol=0.05)
    np.testing.assert_allclose(found[:, 1], wanted[:, 1], atol=1e-6 + np.abs(wanted[:, 1]).max() / 100)


def test_the_matrix_and_the_accuracy_are_those_of_the_model_file(run: Run, page: Element, chances: np.ndarray) -> None:
    targets, answers = _held(run).targets, chances.argmax(axis=1)
    matrix = tables(part(page, "Confusions"))[0]
    assert matrix[0][1:] == list(CLASSES)
    found = np.array([row[1:] for row in matrix[1:]], dtype=int)
    np.testing.assert_array_equal(found, confusion_matrix(targets, answers, labels=[0, 1, 2]))
    told = words(next(page.iter("dd")))
    assert told.startswith(f"{100 * (targets == answers).mean():.2f}%")
    result = run.folder.read_result()
    assert result.accuracy == pytest.approx((targets == answers).mean())
    assert result.loss == pytest.approx(-np.log(chances[np.arange(len(targets)), targets]).mean(), abs=1e-5)
    assert (result.split, result.images, result.weights) == ("val", len(targets), "averaged")


def test_the_mistakes_are_those_that_the_model_is_surest_of(run: Run, page: Element, chances: np.ndarray) -> None:
    targets, answers = _held(run).targets, chances.argmax(axis=1)
    wrong = sorted(np.flatnonzero(answers != targets), key=lambda at: -chances[at].max())
    assert wrong, "a run so short makes mistakes"
    shown = list(part(page, "Most confident mistakes").iter("figure"))
    for found, at in zip(shown, wrong, strict=True):
        answer, file = (words(node) for node in found.iter("p"))
        assert answer == f"{CLASSES[answers[at]]} {100 * chances[at].max():.0f}%is {CLASSES[targets[at]]}"
        assert file == f"image {at}"


def test_the_cost_is_images_by_the_clock_and_the_models_parameters(run: Run, page: Element) -> None:
    seconds = sum(row["seconds"] for row in read_rows(run.folder.path / "timing.jsonl"))
    parameters = sum(tensor.numel() for tensor in load(run.folder.model).parameters())
    spent = json.loads(run.folder.result.read_text())["cost"]
    assert spent["images_per_second"] == pytest.approx(12 * 8 / seconds)
    assert spent["parameters"] == parameters
    assert spent["exaflops"] == pytest.approx(6 * 0.75 * spent["gmacs_per_image"] * 1e9 * 12 * 8 / 1e18)  # 1/4 dropped
    assert spent["gflops_per_second"] == pytest.approx(spent["exaflops"] * 1e9 / seconds)
    told = pairs(part(page, "Cost"))
    assert told["parameters"] == f"{parameters:,}"
    assert float(told["images/s"].replace(",", "")) == pytest.approx(12 * 8 / seconds, rel=1e-3, abs=0.06)
    assert told["training time"] == f"{seconds / 60:.1f} min"


def test_every_setting_of_the_run_is_on_the_page(run: Run, page: Element) -> None:
    stored = flatten(json.loads(run.folder.config.read_text()))
    shown = settings(part(page, "Settings"))
    assert len(stored) > 60
    assert shown.keys() == stored.keys()
    for name, value in stored.items():
        assert shown[name] == (value if isinstance(value, str) else json.dumps(value)), name


def test_the_data_are_counted_split_by_split(run: Run, page: Element) -> None:
    counts = [np.bincount(split.targets) for split in (run.data.train, _held(run))]
    rows = [[label, *(str(count[at]) for count in counts)] for at, label in enumerate(CLASSES)]
    assert tables(part(page, "Data"))[-1] == [["class", "train", "val"], *rows]
