"""Parts of a data set."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.utils.class_weight import compute_class_weight

from tests.data.arrays import dataset
from vitrail.base.errors import ConfigError, InputError
from vitrail.data.dataset import Dataset
from vitrail.data.subsets import class_weights, few_shot, fraction_of, stratified_split


def of(targets: np.ndarray) -> Dataset:
    return dataset([np.zeros((1, 1), np.uint8)] * len(targets), targets, channels=1)


TARGETS = st.lists(st.integers(-1, 5), min_size=1, max_size=200).map(np.array)


@given(TARGETS, st.floats(0.01, 0.99), st.integers(0, 2**40))
def test_a_split_has_every_image_once_and_a_part_of_every_class(targets, fraction: float, seed: int) -> None:
    rest, held = stratified_split(of(targets), fraction, seed)
    assert sorted([*rest.rows, *held.rows]) == list(range(len(targets)))
    for label in range(-1, 6):
        total, out = int((targets == label).sum()), int((held.targets == label).sum())
        if total > 1:
            assert 1 <= out < total
            assert abs(out - fraction * total) <= 1
        else:
            assert out == 0
    assert rest.labels == held.labels


@given(TARGETS, st.floats(0.01, 1.0), st.floats(0.01, 1.0), st.integers(0, 99))
def test_a_smaller_fraction_lies_inside_of_a_larger_one(targets, one: float, other: float, seed: int) -> None:
    small, large = (set(fraction_of(of(targets), share, seed).rows) for share in sorted((one, other)))
    assert small <= large
    assert len(fraction_of(of(targets), 1.0, seed)) == len(targets)


def test_the_papers_data_sizes_are_nested_and_balanced() -> None:
    jft = of(np.arange(3000) % 6)
    parts = [fraction_of(jft, millions / 300, 0) for millions in (9, 30, 90, 300)]
    assert [len(part) for part in parts] == [90, 300, 900, 3000]
    for smaller, larger in pairwise(parts):
        assert set(smaller.rows) < set(larger.rows)
        assert set(smaller.counts) == {len(smaller) // 6}
    assert set(parts[0].rows) != set(fraction_of(jft, 0.03, 1).rows)


def test_every_image_is_equally_likely_to_be_chosen() -> None:
    chosen = np.zeros(60)
    for seed in range(600):
        chosen[few_shot(of(np.arange(60) % 3), 5, seed).rows] += 1
    assert np.abs(chosen / 150 - 1).max() < 0.3


@given(st.integers(1, 10), st.integers(1, 10), st.integers(0, 99))
def test_shots_are_so_many_of_each_class_and_fewer_are_among_more(one: int, other: int, seed: int) -> None:
    data = of(np.repeat([0, 1, 2, -1], [10, 20, 30, 40]))
    few, many = (few_shot(data, shots, seed) for shots in sorted((one, other)))
    assert set(few.counts) == {min(one, other)}
    assert set(few.rows) <= set(many.rows)
    assert few.targets.min() == 0


def test_too_few_images_for_the_shots_are_named() -> None:
    with pytest.raises(InputError, match=r"the arrays has classes with fewer than 4 images: class 1 \(3\).*at most 3"):
        few_shot(of(np.repeat([0, 1], [9, 3])), 4, 0)


def test_parts_that_are_none_are_refused() -> None:
    data = of(np.zeros(4, int))
    for share in (0.0, -1.0, 1.5, float("nan")):
        with pytest.raises(ConfigError, match="fraction"):
            fraction_of(data, share, 0)
    for share in (0.0, 1.0):
        with pytest.raises(ConfigError, match="held out"):
            stratified_split(data, share, 0)
    with pytest.raises(ConfigError, match="at least 1"):
        few_shot(data, 0, 0)


@given(st.lists(st.integers(1, 1000), min_size=1, max_size=20))
def test_class_weights_are_scikit_learns_up_to_their_mean(counts: list[int]) -> None:
    targets = np.repeat(np.arange(len(counts)), counts)
    theirs = compute_class_weight("balanced", classes=np.arange(len(counts)), y=targets)
    np.testing.assert_allclose(class_weights(np.array(counts)), theirs / theirs.mean())


def test_a_class_without_images_has_no_weight() -> None:
    np.testing.assert_allclose(class_weights(np.array([1, 0, 3])), [1.5, 0, 0.5])
