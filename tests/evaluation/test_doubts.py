"""Labels that features contradict: planted wrong ones, and the scores against least squares written out in NumPy."""

import numpy as np
import pytest
import torch

from vitrail.evaluation.doubts import DOUBT, FOLDS, folds, label_doubts


def clusters(classes: int = 3, images: int = 40, width: int = 6, seed: int = 0):
    chance = np.random.default_rng(seed)
    targets = np.repeat(np.arange(classes), images)
    centres = 4 * np.eye(classes, width)
    return centres[targets] + chance.normal(size=(len(targets), width)), targets


def test_planted_wrong_labels_are_found_and_no_others() -> None:
    features, truth = clusters()
    labels, wrong = truth.copy(), [3, 50, 100]
    labels[wrong] = (labels[wrong] + 1) % 3
    found = label_doubts(torch.from_numpy(features).float(), labels, 3)
    assert sorted(found.doubtful.tolist()) == wrong
    assert found.other[wrong].tolist() == truth[wrong].tolist()
    assert found.agreement == pytest.approx(1 - 3 / len(labels))
    assert (np.diff(found.doubt[found.doubtful]) <= 0).all()
    assert found.doubt[found.doubtful].min() >= DOUBT


def test_doubts_are_those_of_least_squares_fitted_without_the_image() -> None:
    features, targets = clusters(images=12, seed=1)
    found, fold = label_doubts(torch.from_numpy(features), targets, 3, seed=5), folds(targets, 5)
    for image in range(0, len(targets), 7):
        rest = fold != fold[image]
        mean, std = features[rest].mean(0), features[rest].std(0) + 1e-5
        x = np.column_stack([(features[rest] - mean) / std, np.full(rest.sum(), 100.0)])
        y = 2 * np.eye(3)[targets[rest]] - 1
        weights = np.linalg.solve(x.T @ x + rest.sum() / 2 * np.eye(x.shape[1]), x.T @ y)
        scores = np.append((features[image] - mean) / std, 100.0) @ weights
        others = np.delete(scores, targets[image])
        assert found.doubt[image] == pytest.approx(others.max() - scores[targets[image]], abs=1e-8)


def test_folds_share_each_class_evenly_and_depend_on_the_seed() -> None:
    targets = np.repeat([0, 1, 2], [10, 23, 14])
    np.random.default_rng(0).shuffle(targets)
    dealt = folds(targets, 0)
    for target in range(3):
        counts = np.bincount(dealt[targets == target], minlength=FOLDS)
        assert counts.max() - counts.min() <= 1
    assert (folds(targets, 0) == dealt).all()
    assert (folds(targets, 1) != dealt).any()


def test_classes_that_are_too_small_or_alone_are_not_judged() -> None:
    features, targets = clusters(classes=2, images=10)
    assert label_doubts(torch.from_numpy(features), targets, 2) is not None
    assert label_doubts(torch.from_numpy(features)[1:], targets[1:], 2) is None
    assert label_doubts(torch.from_numpy(features), np.zeros(20, dtype=np.int64), 2) is None
    assert label_doubts(torch.from_numpy(features), targets, 5) is not None  # classes without images do not count
