import json

import numpy as np
import pytest
from scipy import stats
from sklearn import metrics as oracle

from tests.evaluation.making import answers_of, noisy
from vitrail.base.errors import InputError
from vitrail.base.scores import interval
from vitrail.evaluation.metrics import measure, share, summary

LOGITS, TARGETS = noisy(300, 8, sure=1.5)


@pytest.fixture(scope="module")
def metrics():
    return measure(answers_of(LOGITS, TARGETS), 8, resamples=2000)


def test_every_figure_is_what_scikit_learn_says(metrics) -> None:
    predicted = LOGITS.argmax(1)
    expected = {
        "accuracy": oracle.accuracy_score(TARGETS, predicted),
        "balanced_accuracy": oracle.balanced_accuracy_score(TARGETS, predicted),
        "macro_f1": oracle.f1_score(TARGETS, predicted, average="macro"),
        "macro_precision": oracle.precision_score(TARGETS, predicted, average="macro", zero_division=0),
        "top5": oracle.top_k_accuracy_score(TARGETS, LOGITS, k=5, labels=range(8)),
    }
    for name, value in expected.items():
        assert metrics.figures[name].value == pytest.approx(value), name
    assert metrics.figures["ece"].value == pytest.approx(metrics.reliability.ece)


@pytest.mark.parametrize(
    ("name", "statistic"),
    [
        ("macro_f1", lambda truth, answer: oracle.f1_score(truth, answer, average="macro", zero_division=0)),
        (
            "balanced_accuracy",
            lambda truth, answer: np.mean([np.mean(answer[truth == one] == one) for one in set(truth)]),
        ),
    ],
)
def test_intervals_of_class_means_are_those_of_scipys_paired_bootstrap(metrics, name, statistic) -> None:
    scipys = stats.bootstrap(
        (TARGETS, LOGITS.argmax(1)),
        statistic,
        paired=True,
        vectorized=False,
        method="percentile",
        n_resamples=400,
        rng=np.random.default_rng(1),
    ).confidence_interval
    width = scipys.high - scipys.low
    assert (metrics.figures[name].low, metrics.figures[name].high) == pytest.approx(
        (scipys.low, scipys.high), abs=width / 5
    )


def test_every_interval_is_in_order_and_around_means_lie_their_values(metrics) -> None:
    for name, figure in metrics.figures.items():
        assert figure.low < figure.high, name
        if name != "ece":  # resampling makes bins noisier, and their error larger
            assert figure.low <= figure.value <= figure.high, name


def test_when_every_answer_is_right_the_interval_is_wilsons() -> None:
    logits, targets = noisy(40, 3, sure=100.0)
    figure = measure(answers_of(logits, targets), 3, resamples=100).figures["accuracy"]
    assert (figure.value, figure.low, figure.high) == (1.0, *interval(40, 40))
    figure = share(np.zeros(7, bool), resamples=100)
    assert (figure.value, figure.low, figure.high) == (0.0, *interval(0, 7))


def test_there_is_no_top_five_of_five_classes() -> None:
    logits, targets = noisy(40, 5)
    assert "top5" not in measure(answers_of(logits, targets), 5, resamples=100).figures


def test_confused_pairs_are_wrong_and_the_most_frequent_come_first(metrics) -> None:
    confusion = oracle.confusion_matrix(TARGETS, LOGITS.argmax(1))
    pairs = metrics.confused(5)
    assert all(confusion[truth, answer] == images and truth != answer for truth, answer, images in pairs)
    np.fill_diagonal(confusion, 0)
    assert [images for *_, images in pairs] == np.sort(confusion.ravel())[::-1][:5].tolist()


def test_the_summary_is_json_with_null_for_what_was_never_counted() -> None:
    logits, targets = noisy(30, 4)
    logits[:, 2] = -100
    others = targets != 2
    metrics = measure(answers_of(logits[others], targets[others]), 4, resamples=100)
    content = json.loads(json.dumps(summary(metrics, ("a", "b", "c", "d")), allow_nan=False))
    assert content["classes"][2] == {"name": "c", "images": 0, "precision": None, "recall": None, "f1": None}
    assert sum(images for *_, images in content["confusion"]) == content["images"] == others.sum()
    assert sum(each["images"] for each in content["calibration"]["bins"]) == content["images"]
    assert content["accuracy"]["low"] <= content["accuracy"]["value"] <= content["accuracy"]["high"]


def test_nothing_to_score_is_refused() -> None:
    logits, targets = noisy(5, 3)
    with pytest.raises(InputError, match="nothing to score"):
        measure(answers_of(logits, np.full_like(targets, -1)), 3)
