"""Randomness as a function of names and numbers."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare, kstest

from vitrail.base.seeds import generator, key, keys, uniform


def test_the_draws_of_a_key_are_the_outputs_of_splitmix64() -> None:
    published = (6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431)
    draws = uniform(np.array([1234567], dtype=np.uint64), 4)[0]
    np.testing.assert_array_equal(draws, [(bits >> 11) / 2**53 for bits in published])


def test_draws_are_uniform_and_those_of_neighbours_are_independent() -> None:
    draws = uniform(keys(key(0, "test"), np.repeat(np.arange(50), 400), np.tile(np.arange(400), 50)), 4)
    for column in draws.T:
        assert kstest(column, "uniform").pvalue > 1e-4
    for one, other in ((draws[:-1, 0], draws[1:, 0]), (draws[:, 0], draws[:, 1]), (draws[:-400, 2], draws[400:, 2])):
        cells = np.floor(one * 10) * 10 + np.floor(other * 10)
        assert chisquare(np.bincount(cells.astype(int), minlength=100)).pvalue > 1e-4


@given(st.integers(0, 2**40), st.integers(0, 2**40), st.integers(0, 2**62))
def test_a_key_does_not_depend_on_its_neighbours(epoch: int, index: int, seed: int) -> None:
    alone = keys(key(seed, "a"), np.array([epoch]), np.array([index]))
    among = keys(key(seed, "a"), np.array([3, epoch, 5]), np.array([4, index, 6]))
    assert alone[0] == among[1]
    assert alone[0] != keys(key(seed, "b"), np.array([epoch]), np.array([index]))[0]


def test_a_million_keys_are_different() -> None:
    many = keys(key(0, "augment"), np.repeat(np.arange(1000), 1000), np.tile(np.arange(1000), 1000))
    assert len(np.unique(many)) == 1_000_000


def test_the_same_path_gives_the_same_generator_and_another_path_another() -> None:
    first, again, other = generator(0, "a", 1), generator(0, "a", 1), generator(0, "a", 2)
    draws = torch.rand(8, generator=first)
    assert torch.equal(draws, torch.rand(8, generator=again))
    assert not torch.equal(draws, torch.rand(8, generator=other))
