import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn import metrics

from vitrail.base.scores import interval, most_confused, scores


def _random_answers(seed: int, classes: int, images: int) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    return generator.integers(0, classes, images), generator.integers(0, classes, images)


@given(st.integers(0, 2**16), st.integers(2, 8), st.integers(1, 60))
def test_every_score_is_what_scikit_learn_says(seed: int, classes: int, images: int) -> None:
    truth, predicted = _random_answers(seed, classes, images)
    labels = list(range(classes))
    result = scores(metrics.confusion_matrix(truth, predicted, labels=labels))
    precision, recall, f1, support = metrics.precision_recall_fscore_support(
        truth, predicted, labels=labels, zero_division=np.nan
    )
    np.testing.assert_array_equal(result.support, support)
    np.testing.assert_allclose(result.precision, precision)
    np.testing.assert_allclose(result.recall, recall)
    np.testing.assert_allclose(np.nan_to_num(result.f1), np.nan_to_num(f1))
    assert result.accuracy == pytest.approx(metrics.accuracy_score(truth, predicted))
    assert result.macro_f1 == pytest.approx(metrics.f1_score(truth, predicted, average="macro", zero_division=0))
    assert result.macro_precision == pytest.approx(
        metrics.precision_score(truth, predicted, average="macro", zero_division=0)
    )
    assert result.balanced_accuracy == pytest.approx(np.nanmean(recall))


@given(st.integers(1, 500), st.data())
def test_the_interval_is_wilsons(total: int, data: st.DataObject) -> None:
    correct = data.draw(st.integers(0, total))
    expected = stats.binomtest(correct, total).proportion_ci(method="wilson")
    assert interval(correct, total) == pytest.approx((expected.low, expected.high), abs=1e-12)


def test_the_most_confused_pairs_come_first_and_right_answers_are_left_out() -> None:
    confusion = np.array([[9, 1, 0], [4, 5, 3], [0, 3, 7]])
    assert most_confused(confusion, 3) == [(1, 0, 4), (1, 2, 3), (2, 1, 3)]
