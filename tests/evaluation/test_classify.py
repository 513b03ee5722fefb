import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics

from tests.evaluation.making import answers_of, noisy, softmax


@given(st.integers(0, 2**16), st.integers(2, 12), st.integers(1, 40), st.integers(1, 41))
def test_answers_are_those_of_scikit_learn_for_any_batch(seed: int, classes: int, images: int, batch: int) -> None:
    logits, targets = noisy(images, classes, seed=seed)
    made = answers_of(logits, targets, batch=batch)
    chances, labels = softmax(logits), np.arange(classes)
    assert made.answered.all()
    np.testing.assert_array_equal(made.predicted, logits.argmax(1))
    np.testing.assert_allclose(made.confidence, chances.max(1), rtol=1e-5)
    assert made.accuracy == metrics.accuracy_score(targets, logits.argmax(1))
    assert made.loss == pytest.approx(metrics.log_loss(targets, chances, labels=labels), rel=1e-5)
    np.testing.assert_array_equal(
        made.confusion(classes), metrics.confusion_matrix(targets, logits.argmax(1), labels=labels)
    )
    brier = ((chances - np.eye(classes)[targets]) ** 2).sum(1)
    np.testing.assert_allclose(made.squares, brier, rtol=1e-4, atol=1e-6)
    if classes > 5:
        assert made.top5 == metrics.top_k_accuracy_score(targets, logits, k=5, labels=labels)


def test_the_brier_score_of_two_classes_is_twice_scikit_learns() -> None:
    logits, targets = noisy(50, 2)
    once = metrics.brier_score_loss(targets, softmax(logits)[:, 1])
    assert answers_of(logits, targets).squares.mean() == pytest.approx(2 * once, rel=1e-5)


def test_the_best_classes_come_in_order_and_equal_scores_keep_the_order_of_classes() -> None:
    logits, targets = noisy(30, 9)
    logits[3] = [0, 2, 2, 1, 2, 0, 0, 0, 0]
    made = answers_of(logits, targets, top=4)
    np.testing.assert_array_equal(made.best, np.argsort(-logits, axis=1, kind="stable")[:, :4])
    np.testing.assert_allclose(made.chances, np.take_along_axis(softmax(logits), made.best, 1), rtol=1e-5)
    np.testing.assert_array_equal(made.best[:, 0], made.predicted)
    assert made.best[3].tolist() == [1, 2, 4, 3]


@given(st.integers(0, 2**16), st.integers(6, 12))
def test_with_equal_scores_top_5_is_what_is_listed(seed: int, classes: int) -> None:
    generator = np.random.default_rng(seed)
    logits = generator.integers(0, 3, (30, classes)).astype(np.float32)
    targets = generator.integers(0, classes, 30)
    made = answers_of(logits, targets, top=5)
    listed = np.argsort(-logits, axis=1, kind="stable")
    np.testing.assert_array_equal(made.above, (listed == targets[:, None]).argmax(1))
    np.testing.assert_array_equal(made.above == 0, made.predicted == targets)
    assert made.top5 == pytest.approx((made.best == targets[:, None]).any(1).mean())


def test_a_head_of_zeros_knows_five_classes_of_ten() -> None:
    made = answers_of(np.zeros((40, 10), np.float32), np.arange(40) % 10)
    assert (made.accuracy, made.top5) == (0.1, 0.5)


def test_images_without_a_class_are_answered_but_not_counted() -> None:
    logits, targets = noisy(20, 6)
    some = targets.copy()
    some[::3] = -1
    made, wanted = answers_of(logits, some), answers_of(logits[some >= 0], targets[some >= 0])
    assert made.answered.all()
    assert made.counted.sum() == (some >= 0).sum()
    for figure in ("accuracy", "top5", "loss"):
        assert getattr(made, figure) == pytest.approx(getattr(wanted, figure))
    np.testing.assert_array_equal(made.confusion(6), wanted.confusion(6))
    np.testing.assert_array_equal(made.predicted, logits.argmax(1))


def test_classes_are_scored_without_the_matrix_as_with_it() -> None:
    logits, targets = noisy(60, 7)
    made = answers_of(logits, targets)
    confusion = made.confusion(7)
    found = np.zeros((7, 7), int)
    for truth, given_class, images in made.cells():
        found[truth, given_class] = images
    np.testing.assert_array_equal(found, confusion)
    np.testing.assert_array_equal(made.scores(7).hits, confusion.diagonal())
    np.testing.assert_allclose(made.scores(7).recall, confusion.diagonal() / confusion.sum(1))


def test_the_most_confident_mistakes_come_first() -> None:
    logits, targets = noisy(60, 5)
    made = answers_of(logits, targets)
    shown = made.mistakes(10)
    assert (made.predicted[shown] != targets[shown]).all()
    assert (np.diff(made.confidence[shown]) <= 0).all()
    wrong = made.confidence[made.predicted != targets]
    np.testing.assert_array_equal(np.sort(wrong)[::-1][:10], made.confidence[shown])
