from functools import partial

import numpy as np
import pytest
import torch

from tests.data.arrays import noise
from tests.evaluation.featuring import extractor, images, model_of, random_features
from vitrail.base.errors import ConfigError, InputError
from vitrail.data.budget import Budget
from vitrail.data.subsets import few_shot
from vitrail.evaluation.features import Features
from vitrail.evaluation.fewshot import (
    LabelledFeatures,
    Score,
    check_shots,
    draw,
    extract_drawn,
    extract_labelled,
    measure,
)
from vitrail.evaluation.neighbours import neighbours
from vitrail.evaluation.probe import probe
from vitrail.evaluation.ridge import ridge

METHODS = {"ridge": ridge, "neighbours": neighbours, "probe": probe}


class FakeExtractor:
    """An extractor whose feature of an image is its row; it records its calls."""

    def __init__(self, broken=()) -> None:
        self.broken, self.rows = set(broken), []
        self.budgets: list[Budget | None] = []

    def __call__(self, dataset, *, skip_broken=None) -> Features:
        self.rows.append(dataset.rows.tolist())
        self.budgets.append(skip_broken)
        read = np.array([row not in self.broken for row in dataset.rows.tolist()])
        return Features(values=torch.from_numpy(dataset.rows.astype(np.float32))[:, None], read=read)


def test_only_what_is_drawn_goes_through_the_model_and_only_once() -> None:
    train, extract = noise(60, classes=3), FakeExtractor()
    draws, features = extract_drawn(train, [1, 2, 5], 3, extract)
    assert [(each.shots, each.seed) for each in draws] == [(shots, seed) for shots in (1, 2, 5) for seed in range(3)]
    largest = {row for seed in range(3) for row in few_shot(train, 5, seed).rows.tolist()}
    assert extract.rows == [sorted(largest)]
    for each in draws:
        assert each.images.counts.tolist() == [each.shots] * 3
        assert each.images.rows.tolist() == few_shot(train, each.shots, each.seed).rows.tolist()
        examples = features.take(each.images)
        assert examples.values[:, 0].tolist() == each.images.rows.tolist()
        assert (examples.targets == train.targets[each.images.rows]).all()


def test_all_images_are_drawn_once_whatever_the_seeds() -> None:
    train = noise(20, classes=2)
    (each,) = draw(train, [None], 3)
    assert each.images.rows.tolist() == list(range(20))
    extract = FakeExtractor()
    _, features = extract_drawn(train, [None, 2], 3, extract)
    assert extract.rows == [list(range(20))]
    assert features.take(each.images) is features


def test_another_image_is_drawn_in_the_place_of_a_broken_one() -> None:
    train = noise(60, classes=3)
    broken = set(few_shot(train, 2, 0).rows.tolist()[:3])
    extract = FakeExtractor(broken)
    draws, features = extract_drawn(train, [2], 2, extract, skip_broken=Budget(count=4))
    for each in draws:
        assert each.images.counts.tolist() == [2, 2, 2]
        assert not broken & set(each.images.rows.tolist())
        assert features.take(each.images).values[:, 0].tolist() == each.images.rows.tolist()
    assert len(extract.rows) == 2
    assert not set(extract.rows[0]) & set(extract.rows[1])
    assert extract.budgets == [Budget(count=4), Budget(count=1)]


def test_images_without_a_class_are_neither_drawn_nor_counted() -> None:
    data = noise(12, classes=3)
    data.targets[[0, 5]] = -1
    assert extract_labelled(data, FakeExtractor()).rows.tolist() == [1, 2, 3, 4, 6, 7, 8, 9, 10, 11]
    (each,) = draw(data, [None], 1)
    assert 0 not in each.images.rows
    assert 0 not in extract_drawn(data, [3], 1, FakeExtractor())[1].rows


def test_what_could_not_be_read_is_not_measured_on() -> None:
    features = extract_labelled(noise(10, classes=2), FakeExtractor(broken=[4]), skip_broken=Budget(count=1))
    assert features.rows.tolist() == [0, 1, 2, 3, 5, 6, 7, 8, 9]
    assert features.values[:, 0].tolist() == features.rows.tolist()


def _scores(methods, *, shots=(2, 8), classes=3, apart=3.0) -> list[Score]:
    values, targets = random_features(90, 10, classes, apart=apart)
    test_values, _ = random_features(90, 10, classes, apart=apart)
    train = noise(90, classes=classes)
    train.targets[:] = targets
    features = LabelledFeatures(rows=train.rows, targets=train.targets, values=values)
    test = LabelledFeatures(rows=np.arange(90), targets=targets, values=test_values)
    return measure(features, draw(train, shots, 3), test, classes, methods)


def test_every_method_tells_clouds_apart() -> None:
    scores = _scores(METHODS)
    assert [(score.shots, score.method) for score in scores] == [
        (shots, method) for shots in (2, 8) for method in METHODS
    ]
    for score in scores:
        assert len(score.accuracies) == 3
        assert score.images == 3 * score.shots
        assert score.mean > 0.9, score


def test_accuracy_is_the_share_of_right_answers() -> None:
    def first(_, targets, classes, queries):
        assert sorted(set(targets.tolist())) == [0, 1, 2]
        assert classes == 3
        return {"first": np.zeros(len(queries), dtype=np.int64)}

    _, targets = random_features(90, 10, 3)
    for score in _scores({"first": first}):
        assert score.accuracies == (float((targets == 0).mean()),) * 3
        assert score.spread == 0


def test_mean_and_deviation_are_numpys() -> None:
    score = Score(shots=5, method="ridge", images=50, accuracies=(0.5, 0.61, 0.58))
    assert score.mean == pytest.approx(np.mean(score.accuracies))
    assert score.spread == pytest.approx(np.std(score.accuracies, ddof=1))
    assert Score(shots=None, method="ridge", images=50, accuracies=(0.5,)).spread is None


def test_few_shot_accuracy_works_from_images_on() -> None:
    train, test = images(60), images(30)  # the same images: each is its own nearest neighbour
    extract = extractor(model_of())
    draws, features = extract_drawn(train, [None], 1, extract)
    methods = {"neighbours": partial(neighbours, most=1)}
    (score,) = measure(features, draws, extract_labelled(test, extract), 3, methods)
    assert score.accuracies == (1.0,)


def test_what_cannot_be_drawn_is_refused_before_any_image_is_read() -> None:
    train, test = noise(12, classes=3), noise(6, classes=3)
    with pytest.raises(InputError, match="fewer than 5 images"):
        check_shots(train, test, [1, 5], 3)
    with pytest.raises(ConfigError, match="`seeds` is 0"):
        check_shots(train, test, [1], 0)
    bare = noise(6, classes=3)
    bare.targets[:] = -1
    with pytest.raises(InputError, match="no labels"):
        check_shots(train, bare, [1], 3)
    with pytest.raises(InputError, match="only one class"):
        check_shots(noise(6, classes=1), noise(3, classes=1), [1], 3)
    check_shots(train, test, [1, 4, None], 3)
