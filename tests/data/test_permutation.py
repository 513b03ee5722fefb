"""A shuffle that is never stored."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from vitrail.base.seeds import key, keys
from vitrail.data.permutation import permute, unpermute


def whole(length: int, seed: int) -> np.ndarray:
    places = np.arange(length)
    return permute(places, np.full(length, length), keys(key(seed, "test"), np.zeros(length, dtype=np.int64)))


@given(st.integers(1, 3000), st.integers(0, 2**62))
def test_every_key_gives_a_permutation(length: int, seed: int) -> None:
    np.testing.assert_array_equal(np.sort(whole(length, seed)), np.arange(length))


@given(st.integers(1, 2**40), st.integers(0, 2**62), st.data())
def test_every_place_finds_its_way_back(length: int, seed: int, data: st.DataObject) -> None:
    places = np.array(data.draw(st.lists(st.integers(0, length - 1), min_size=1, max_size=20)), dtype=np.int64)
    lengths, names = np.full(len(places), length), keys(key(seed, "test"), places * 0)
    sent = permute(places, lengths, names)
    assert sent.min() >= 0
    assert sent.max() < length
    np.testing.assert_array_equal(unpermute(sent, lengths, names), places)


def test_positions_of_different_ranges_and_keys_go_together() -> None:
    rng = np.random.default_rng(0)
    lengths = rng.integers(1, 500, 200)
    places, names = rng.integers(0, lengths), keys(1, rng.integers(0, 9, 200))
    one_by_one = [permute(places[i : i + 1], lengths[i : i + 1], names[i : i + 1])[0] for i in range(200)]
    np.testing.assert_array_equal(permute(places, lengths, names), one_by_one)


@pytest.mark.parametrize("length", [2, 3, 4, 5, 6])
def test_all_permutations_of_a_few_are_equally_likely(length: int) -> None:
    tries = 40_000
    names = keys(key(0, "test", length), np.arange(tries))
    sent = [permute(np.full(tries, place), np.full(tries, length), names) for place in range(length)]
    found = sum(place * length**at for at, place in enumerate(sent))
    counts = np.unique(found, return_counts=True)[1]
    assert len(counts) == math.factorial(length)
    assert chisquare(counts).pvalue > 1e-4


@pytest.mark.parametrize("length", [7, 30, 101])
def test_a_position_goes_everywhere_and_its_neighbour_anywhere_else(length: int) -> None:
    tries = 20_000
    names = keys(key(1, "test", length), np.arange(tries))
    lengths = np.full(tries, length)
    for place in (0, length // 2, length - 2):
        here, next_door = (permute(np.full(tries, at), lengths, names) for at in (place, place + 1))
        assert chisquare(np.bincount(here, minlength=length)).pvalue > 1e-4
        assert chisquare(np.bincount((next_door - here) % length, minlength=length)[1:]).pvalue > 1e-4


def test_another_key_gives_an_unrelated_order() -> None:
    length = 2000
    one, other = whole(length, 0), whole(length, 1)
    assert (one == other).sum() < 12  # 1 is expected
    assert abs(np.corrcoef(one, other)[0, 1]) < 0.1
    assert abs(np.corrcoef(one, np.arange(length))[0, 1]) < 0.1
