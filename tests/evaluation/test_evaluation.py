import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.evaluation.making import FixedEngine, noisy, pictures_of, softmax
from tests.training.making import Made
from vitrail.base.errors import ConfigError, ImageError, InputError
from vitrail.data.dataset import Dataset
from vitrail.evaluation.evaluation import EvaluationConfig, evaluate
from vitrail.evaluation.predictions import write_predictions
from vitrail.evaluation.subset import choose

LABELS = ("=cat", "+dog", "@emu", 'fo"x', "g,nu", "hare\rhound", "ibis")
QUICK = EvaluationConfig(resamples=100, batch=7)


class Broken(Made):
    """Images of which two cannot be read."""

    def read(self, row: int) -> np.ndarray:
        if row in (3, 11):
            raise ImageError("it is broken.")
        return self.images[row]

    def digest(self, rows: np.ndarray) -> bytes:
        return b"".join(bytes(self.read(row)) for row in rows.tolist())


def _data(count: int = 40, *, pictures: type[Made] = Made, labels: tuple[str, ...] = LABELS) -> Dataset:
    return Dataset(
        pictures=pictures(pictures_of(count)),
        rows=np.arange(count),
        targets=noisy(count, 7)[1],
        labels=labels,
        where="zoo",
        split="test",
    )


def _evaluation(dataset: Dataset, config: EvaluationConfig = QUICK, **flags: bool):
    choice = choose(dataset, LABELS, 7, **flags)
    return evaluate(FixedEngine(noisy(40, 7)[0]), dataset, choice, config)


@pytest.mark.parametrize("batch", [1, 7, 40, 64])
def test_every_image_is_counted_once_for_any_batch(batch: int) -> None:
    evaluation, expected = _evaluation(_data(), replace(QUICK, batch=batch)), _evaluation(_data())
    assert evaluation.metrics is not None
    assert evaluation.metrics.images == 40
    np.testing.assert_array_equal(evaluation.answers.predicted, noisy(40, 7)[0].argmax(1))
    assert evaluation.to_dict() == expected.to_dict()


def test_workers_change_nothing() -> None:
    assert _evaluation(_data(), replace(QUICK, workers=2)).to_dict() == _evaluation(_data()).to_dict()


def test_broken_images_end_the_work_unless_they_may_be_skipped() -> None:
    data = _data(pictures=Broken)
    with pytest.raises(ImageError, match="image 3: it is broken"):
        _evaluation(data)
    with pytest.raises(InputError, match="2 of 40 images are broken or missing, and 1 may be"):
        _evaluation(data, replace(QUICK, skip_broken="1"))
    evaluation = _evaluation(data, replace(QUICK, skip_broken="5%"))
    assert evaluation.metrics is not None
    assert evaluation.metrics.images == 38
    assert evaluation.skipped == (("image 3", "it is broken."), ("image 11", "it is broken."))


def test_a_subset_of_classes_is_scored_over_those() -> None:
    logits, targets = noisy(40, 7)
    scored = np.isin(targets, (1, 4, 5))
    place = {5: 0, 1: 1, 4: 2}
    some = replace(
        _data().take(np.flatnonzero(scored)),
        labels=(LABELS[5], LABELS[1], LABELS[4]),
        targets=np.array([place[target] for target in targets[scored]]),
    )
    evaluation = _evaluation(some)
    assert evaluation.choice.labels == (LABELS[1], LABELS[4], LABELS[5])
    right = np.array([1, 4, 5])[logits[scored][:, [1, 4, 5]].argmax(1)] == targets[scored]
    assert evaluation.to_dict()["accuracy"]["value"] == pytest.approx(right.mean())
    assert (evaluation.to_dict()["scored_classes"], evaluation.to_dict()["model_classes"]) == (3, 7)
    everything = _evaluation(some, all_classes=True)
    assert everything.to_dict()["accuracy"]["value"] == pytest.approx((logits.argmax(1) == targets)[scored].mean())


def test_images_without_a_class_are_left_out_and_data_without_any_class_is_refused() -> None:
    data = _data()
    some = replace(data, targets=np.where(np.arange(40) < 9, -1, data.targets))
    evaluation = _evaluation(some)
    assert evaluation.metrics is not None
    assert evaluation.metrics.images == len(evaluation.dataset) == 31
    with pytest.raises(InputError, match="zoo has no image with a class to compare"):
        _evaluation(replace(data, targets=np.full(40, -1)))


def test_scores_that_are_not_finite_are_refused() -> None:
    data, logits = _data(), noisy(40, 7)[0]
    logits[5] = np.nan
    with pytest.raises(InputError, match=r"not finite for 1 of 40 images, such as image 5; .*`vitrail verify`"):
        evaluate(FixedEngine(logits), data, choose(data, LABELS, 7), QUICK)


@pytest.mark.parametrize("change", [{"batch": 0}, {"workers": -1}, {"resamples": 99}, {"skip_broken": "some"}])
def test_wrong_settings_are_refused(change: dict[str, object]) -> None:
    with pytest.raises(ConfigError):
        replace(QUICK, **change)


def test_every_prediction_is_in_the_csv_whatever_the_names_are(tmp_path: Path) -> None:
    evaluation = _evaluation(_data(pictures=Broken), replace(QUICK, skip_broken="2"))
    path = tmp_path / "predictions.csv"
    write_predictions(path, evaluation.dataset, evaluation.answers)
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    logits, targets = noisy(40, 7)
    readable = [index for index in range(40) if index not in (3, 11)]
    assert [row["image"] for row in rows] == [f"image {index}" for index in readable]
    for row, index in zip(rows, readable, strict=True):
        order, chances = np.argsort(-logits[index]), softmax(logits)[index]
        assert row["truth"] == LABELS[targets[index]]
        assert row["predicted"] == row["class_1"] == LABELS[order[0]]
        assert row["right"] == str(int(order[0] == targets[index]))
        assert row["confidence"] == row["probability_1"]
        assert [row[f"class_{place}"] for place in range(1, 6)] == [LABELS[at] for at in order[:5]]
        for place in range(1, 6):
            assert float(row[f"probability_{place}"]) == pytest.approx(chances[order[place - 1]], abs=1e-6)
