import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.evaluation.making import answers_of
from tests.training.making import Made
from vitrail.base.errors import InputError
from vitrail.data.dataset import Dataset
from vitrail.evaluation.real import (
    CLASSES,
    IMAGES,
    check_outputs,
    choose_with_real,
    image_numbers,
    measure_real,
    read_real,
)


class Named(Made):
    """Images with the names of a list."""

    def name(self, row: int) -> str:
        return NAMES[row]


NAMES = [
    "val/ILSVRC2012_val_00000003.JPEG",
    "val/n01440764/ILSVRC2012_val_00050000.jpg",
    "shard.tar/ilsvrc2012_val_00000001.jpeg",
    "val/photo.jpg",
    "val/ILSVRC2012_val_00050001.JPEG",
    "val/ILSVRC2012_val_000000031.JPEG",
]


def _data(rows: list[int]) -> Dataset:
    images = np.zeros((len(NAMES), 1, 1, 3), np.uint8)
    return Dataset(pictures=Named(images), rows=np.array(rows), targets=np.full(len(rows), -1), labels=(), where="val")


def test_the_number_in_a_name_is_found_wherever_the_image_lies() -> None:
    assert image_numbers(_data([0, 1, 2])).tolist() == [3, 50_000, 1]


@pytest.mark.parametrize("row", [3, 4, 5])
def test_a_name_without_such_a_number_is_refused(row: int) -> None:
    with pytest.raises(InputError, match="1 of 2 images of val have no number"):
        image_numbers(_data([0, row]))


def test_an_answer_is_right_if_it_is_in_the_list_and_empty_lists_are_left_out() -> None:
    lists: list[list[int]] = [[] for _ in range(IMAGES)]
    lists[0], lists[2], lists[4] = [7], [1, 2], [5]
    logits = np.zeros((4, CLASSES), np.float32)
    logits[[0, 1, 2, 3], [7, 2, 3, 9]] = 5.0
    answers = answers_of(logits, np.full(4, -1))
    real = measure_real(answers, np.array([1, 3, 5, 2]), lists, resamples=100)
    assert real.counted.tolist() == [True, True, True, False]
    assert real.right.tolist() == [True, True, False, False]
    assert real.accuracy.value == pytest.approx(2 / 3)
    with pytest.raises(InputError, match="none of the images has a label in ReaL"):
        measure_real(answers, np.array([2, 2, 2, 2]), lists, resamples=100)


def test_a_good_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "real.json"
    path.write_text(json.dumps([[number % CLASSES] if number % 7 else [] for number in range(IMAGES)]))
    lists = read_real(path)
    assert len(lists) == IMAGES
    assert (lists[0], lists[1008]) == ([], [])
    assert lists[1001] == []
    assert lists[1002] == [2]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[[1]]", "is a list of 1, but ReaL has a list of classes for each of 50,000"),
        ('{"a": 1}', "is not a list"),
        ("[[", "cannot be read as JSON"),
        (json.dumps([[1]] * (IMAGES - 1) + [3]), "has 3 for image 50000"),
        (json.dumps([[1]] * (IMAGES - 1) + [[1000]]), r"has \[1000\] for image 50000, but needs a list of numbers"),
        (json.dumps([["1"]] + [[1]] * (IMAGES - 1)), "for image 1,"),
    ],
)
def test_a_file_that_is_not_reals_is_refused(content: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "real.json"
    path.write_text(content)
    with pytest.raises(InputError, match=message):
        read_real(path)


def test_a_model_of_other_classes_is_refused() -> None:
    check_outputs(1000)
    with pytest.raises(InputError, match="the model has 10 classes"):
        check_outputs(10)


def test_names_that_the_model_lacks_leave_only_real_with_a_note() -> None:
    data = replace(_data([0, 1]), targets=np.array([0, 1]), labels=("n01440764", "n01443537"))
    words = tuple(f"word {number}" for number in range(CLASSES))
    ids = ("n01440764", "n01443537", *words[2:])
    named, unknown, unnamed = (choose_with_real(data, labels, CLASSES) for labels in (ids, words, None))
    assert named.targets(data.targets).tolist() == [0, 1]
    assert named.notes == ()
    for choice, why in ((unknown, "has 2 classes that the model lacks"), (unnamed, "has no class names")):
        assert choice.whole
        assert choice.targets(data.targets).tolist() == [-1, -1]
        assert "only ReaL is measured" in choice.notes[0]
        assert why in choice.notes[0]
    assert choose_with_real(_data([0]), words, CLASSES).notes == ()
