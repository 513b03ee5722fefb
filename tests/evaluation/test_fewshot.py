from functools import partial

import numpy as np
import pytest
import torch

from tests.data.arrays import noise
from tests.evaluation.featuring import extractor, images, made_features, model_of
from vitrail.base.errors import ConfigError, InputError
from vitrail.data.budget import Budget
from vitrail.data.subsets import few_shot
from vitrail.evaluation.features import Features
from vitrail.evaluation.fewshot import (
    Known,
    Score,
    check_shots,
    draw,
    know_all,
    know_drawn,
    measure,
)
from vitrail.evaluation.neighbours import neighbours
from vitrail.evaluation.probe import probe
from vitrail.evaluation.ridge import ridge

METHODS = {"ridge": ridge, "neighbours": neighbours, "probe": probe}


class Asked:
    """Takes the place of an extractor: the feature of an image is its row; remembers what it was asked for."""

    def __init__(self, broken=()) -> None:
        self.broken, self.rows = set(broken), []
        self.budgets: list[Budget | None] = []

    def __call__(self, dataset, *, skip_broken=None) -> Features:
        self.rows.append(dataset.rows.tolist())
        self.budgets.append(skip_broken)
        read = np.array([row not in self.broken for row in dataset.rows.tolist()])
        return Features(values=torch.from_numpy(dataset.rows.astype(np.float32))[:, None], read=read)


def test_only_what_is_drawn_goes_through_the_model_and_only_once() -> None:
    train, asked = noise(60, classes=3), Asked()
    draws, known = know_drawn(train, [1, 2, 5], 3, asked)
    assert [(drawn.shots, drawn.seed) for drawn in draws] == [(shots, seed) for shots in (1, 2, 5) for seed in range(3)]
    largest = {row for seed in range(3) for row in few_shot(train, 5, seed).rows.tolist()}
    assert asked.rows == [sorted(largest)]
    for drawn in draws:
        assert drawn.images.counts.tolist() == [drawn.shots] * 3
        assert drawn.images.rows.tolist() == few_shot(train, drawn.shots, drawn.seed).rows.tolist()
        taken = known.take(drawn.images)
        assert taken.values[:, 0].tolist() == drawn.images.rows.tolist()
        assert (taken.targets == train.targets[drawn.images.rows]).all()


def test_all_images_are_drawn_once_whatever_the_seeds() -> None:
    train = noise(20, classes=2)
    (drawn,) = draw(train, [None], 3)
    assert drawn.images.rows.tolist() == list(range(20))
    asked = Asked()
    _, known = know_drawn(train, [None, 2], 3, asked)
    assert asked.rows == [list(range(20))]
    assert known.take(drawn.images) is known


def test_another_image_is_drawn_in_the_place_of_a_broken_one() -> None:
    train = noise(60, classes=3)
    broken = set(few_shot(train, 2, 0).rows.tolist()[:3])
    asked = Asked(broken)
    draws, known = know_drawn(train, [2], 2, asked, skip_broken=Budget(count=4))
    for drawn in draws:
        assert drawn.images.counts.tolist() == [2, 2, 2]
        assert not broken & set(drawn.images.rows.tolist())
        assert known.take(drawn.images).values[:, 0].tolist() == drawn.images.rows.tolist()
    assert len(asked.rows) == 2
    assert not set(asked.rows[0]) & set(asked.rows[1])
    assert asked.budgets == [Budget(count=4), Budget(count=1)]


def test_images_without_a_class_are_neither_drawn_nor_counted() -> None:
    data = noise(12, classes=3)
    data.targets[[0, 5]] = -1
    assert know_all(data, Asked()).rows.tolist() == [1, 2, 3, 4, 6, 7, 8, 9, 10, 11]
    (drawn,) = draw(data, [None], 1)
    assert 0 not in drawn.images.rows
    assert 0 not in know_drawn(data, [3], 1, Asked())[1].rows


def test_what_could_not_be_read_is_not_measured_on() -> None:
    found = know_all(noise(10, classes=2), Asked(broken=[4]), skip_broken=Budget(count=1))
    assert found.rows.tolist() == [0, 1, 2, 3, 5, 6, 7, 8, 9]
    assert found.values[:, 0].tolist() == found.rows.tolist()


def _measured(methods, *, shots=(2, 8), classes=3, apart=3.0) -> list[Score]:
    values, targets = made_features(90, 10, classes, apart=apart)
    test_values, _ = made_features(90, 10, classes, apart=apart)
    train = noise(90, classes=classes)
    train.targets[:] = targets
    known = Known(rows=train.rows, targets=train.targets, values=values)
    test = Known(rows=np.arange(90), targets=targets, values=test_values)
    return measure(known, draw(train, shots, 3), test, classes, methods)


def test_every_method_tells_clouds_apart() -> None:
    scores = _measured(METHODS)
    assert [(score.shots, score.method) for score in scores] == [
        (shots, method) for shots in (2, 8) for method in METHODS
    ]
    for score in scores:
        assert len(score.accuracies) == 3
        assert score.images == 3 * score.shots
        assert score.mean > 0.9, score


def test_accuracy_is_the_share_of_right_answers() -> None:
    def first(_, targets, classes, asked):
        assert sorted(set(targets.tolist())) == [0, 1, 2]
        assert classes == 3
        return {"first": np.zeros(len(asked), dtype=np.int64)}

    _, targets = made_features(90, 10, 3)
    for score in _measured({"first": first}):
        assert score.accuracies == (float((targets == 0).mean()),) * 3
        assert score.spread == 0


def test_mean_and_deviation_are_numpys() -> None:
    score = Score(shots=5, method="ridge", images=50, accuracies=(0.5, 0.61, 0.58))
    assert score.mean == pytest.approx(np.mean(score.accuracies))
    assert score.spread == pytest.approx(np.std(score.accuracies, ddof=1))
    assert Score(shots=None, method="ridge", images=50, accuracies=(0.5,)).spread is None


def test_it_works_from_images_to_accuracy() -> None:
    train, test = images(60), images(30)  # the same images, so that the nearest neighbour is the image itself
    asked = extractor(model_of())
    draws, known = know_drawn(train, [None], 1, asked)
    methods = {"neighbours": partial(neighbours, most=1)}
    (score,) = measure(known, draws, know_all(test, asked), 3, methods)
    assert score.accuracies == (1.0,)


def test_what_cannot_be_drawn_is_refused_before_any_image_is_read() -> None:
    train, test = noise(12, classes=3), noise(6, classes=3)
    with pytest.raises(InputError, match="fewer than 5 images"):
        check_shots(train, test, [1, 5], 3)
    with pytest.raises(ConfigError, match="0 seeds"):
        check_shots(train, test, [1], 0)
    bare = noise(6, classes=3)
    bare.targets[:] = -1
    with pytest.raises(InputError, match="no labels"):
        check_shots(train, bare, [1], 3)
    with pytest.raises(InputError, match="one class only"):
        check_shots(noise(6, classes=1), noise(3, classes=1), [1], 3)
    check_shots(train, test, [1, 4, None], 3)
