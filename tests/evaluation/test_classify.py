import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics

from tests.evaluation.making import answers_of, noisy, softmax


@given(st.integers(0, 2**16), st.integers(2, 12), st.integers(1, 40), st.integers(1, 41))
def test_answers_are_those_of_scikit_learn_for_any_batch(seed: int, classes: int, images: int, batch: int) -> None:
    logits, targets = noisy(images, classes, seed=seed)
    answers = answers_of(logits, targets, batch=batch)
    chances, labels = softmax(logits), np.arange(classes)
    assert answers.answered.all()
    np.testing.assert_array_equal(answers.predicted, logits.argmax(1))
    np.testing.assert_allclose(answers.confidence, chances.max(1), rtol=1e-5)
    assert answers.accuracy == metrics.accuracy_score(targets, logits.argmax(1))
    assert answers.loss == pytest.approx(metrics.log_loss(targets, chances, labels=labels), rel=1e-5)
    np.testing.assert_array_equal(
        answers.confusion(classes), metrics.confusion_matrix(targets, logits.argmax(1), labels=labels)
    )
    brier = ((chances - np.eye(classes)[targets]) ** 2).sum(1)
    np.testing.assert_allclose(answers.squares, brier, rtol=1e-4, atol=1e-6)
    if classes > 5:
        assert answers.top5 == metrics.top_k_accuracy_score(targets, logits, k=5, labels=labels)


def test_the_brier_score_of_two_classes_is_twice_scikit_learns() -> None:
    logits, targets = noisy(50, 2)
    once = metrics.brier_score_loss(targets, softmax(logits)[:, 1])
    assert answers_of(logits, targets).squares.mean() == pytest.approx(2 * once, rel=1e-5)


def test_the_best_classes_come_in_order_and_equal_scores_keep_the_order_of_classes() -> None:
    logits, targets = noisy(30, 9)
    logits[3] = [0, 2, 2, 1, 2, 0, 0, 0, 0]
    answers = answers_of(logits, targets, top=4)
    np.testing.assert_array_equal(answers.best, np.argsort(-logits, axis=1, kind="stable")[:, :4])
    np.testing.assert_allclose(answers.chances, np.take_along_axis(softmax(logits), answers.best, 1), rtol=1e-5)
    np.testing.assert_array_equal(answers.best[:, 0], answers.predicted)
    assert answers.best[3].tolist() == [1, 2, 4, 3]


@given(st.integers(0, 2**16), st.integers(6, 12))
def test_with_equal_scores_top_5_is_what_is_listed(seed: int, classes: int) -> None:
    generator = np.random.default_rng(seed)
    logits = generator.integers(0, 3, (30, classes)).astype(np.float32)
    targets = generator.integers(0, classes, 30)
    answers = answers_of(logits, targets, top=5)
    listed = np.argsort(-logits, axis=1, kind="stable")
    np.testing.assert_array_equal(answers.above, (listed == targets[:, None]).argmax(1))
    np.testing.assert_array_equal(answers.above == 0, answers.predicted == targets)
    assert answers.top5 == pytest.approx((answers.best == targets[:, None]).any(1).mean())


def test_a_head_of_zeros_knows_five_classes_of_ten() -> None:
    answers = answers_of(np.zeros((40, 10), np.float32), np.arange(40) % 10)
    assert (answers.accuracy, answers.top5) == (0.1, 0.5)


def test_images_without_a_class_are_answered_but_not_counted() -> None:
    logits, targets = noisy(20, 6)
    some = targets.copy()
    some[::3] = -1
    answers, expected = answers_of(logits, some), answers_of(logits[some >= 0], targets[some >= 0])
    assert answers.answered.all()
    assert answers.counted.sum() == (some >= 0).sum()
    for figure in ("accuracy", "top5", "loss"):
        assert getattr(answers, figure) == pytest.approx(getattr(expected, figure))
    np.testing.assert_array_equal(answers.confusion(6), expected.confusion(6))
    np.testing.assert_array_equal(answers.predicted, logits.argmax(1))


def test_classes_are_scored_without_the_matrix_as_with_it() -> None:
    logits, targets = noisy(60, 7)
    answers = answers_of(logits, targets)
    confusion = answers.confusion(7)
    cells = np.zeros((7, 7), int)
    for truth, answer, images in answers.cells():
        cells[truth, answer] = images
    np.testing.assert_array_equal(cells, confusion)
    np.testing.assert_array_equal(answers.scores(7).hits, confusion.diagonal())
    np.testing.assert_allclose(answers.scores(7).recall, confusion.diagonal() / confusion.sum(1))


def test_the_most_confident_mistakes_come_first() -> None:
    logits, targets = noisy(60, 5)
    answers = answers_of(logits, targets)
    worst = answers.mistakes(10)
    assert (answers.predicted[worst] != targets[worst]).all()
    assert (np.diff(answers.confidence[worst]) <= 0).all()
    wrong = answers.confidence[answers.predicted != targets]
    np.testing.assert_array_equal(np.sort(wrong)[::-1][:10], answers.confidence[worst])
