"""Spreads, paired tests and power laws beside SciPy and closed forms."""

import math

import numpy as np
import pytest
from scipy import stats

from vitrail.studies.statistics import paired_test, power_law, spread, student_p, student_quantile


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 5, 10, 29])
@pytest.mark.parametrize("t", [0.0, 0.3, 1.0, 2.5, -4.0, 30.0])
def test_students_probability_is_scipys(freedom, t) -> None:
    assert student_p(t, freedom) == pytest.approx(2 * stats.t.sf(abs(t), freedom), abs=1e-12)


@pytest.mark.parametrize(("freedom", "quantile"), [(1, 12.706), (2, 4.303), (4, 2.776), (9, 2.262)])
def test_quantiles_are_those_of_printed_tables(freedom, quantile) -> None:
    assert student_quantile(freedom) == pytest.approx(quantile, abs=5e-4)


def test_a_paired_test_is_scipys_over_the_seeds_that_both_have() -> None:
    one, other = {0: 0.71, 1: 0.74, 2: 0.70, 5: 0.1}, {0: 0.66, 1: 0.72, 2: 0.69, 7: 0.9}
    test = paired_test(one, other)
    oracle = stats.ttest_rel([0.71, 0.74, 0.70], [0.66, 0.72, 0.69])
    interval = oracle.confidence_interval()
    assert (test.p, test.count) == (pytest.approx(oracle.pvalue), 3)
    assert (test.low, test.high) == (pytest.approx(interval.low), pytest.approx(interval.high))
    assert not test.shown


def test_equal_differences_and_single_seeds() -> None:
    assert paired_test({0: 1.0, 1: 0.5}, {0: 0.5, 1: 0.0}).shown
    assert paired_test({0: 0.5, 1: 0.5}, {0: 0.5, 1: 0.5}).p == 1.0
    assert paired_test({0: 1.0}, {0: 0.5}) is None
    assert spread([]) is None
    assert spread([0.5]).deviation is None
    assert spread([1.0, 3.0]).deviation == pytest.approx(math.sqrt(2))


def test_a_power_law_is_recovered_with_its_interval() -> None:
    compute = np.array([1.0, 2.0, 4.0, 8.0] * 3)
    exact = power_law(compute.tolist(), (0.5 * compute**-0.3).tolist())
    assert (exact.factor, exact.exponent) == (pytest.approx(0.5), pytest.approx(0.3))
    assert exact.low == pytest.approx(0.3)
    assert exact.compute_for(0.25) == pytest.approx(2 ** (1 / 0.3))
    assert power_law([1.0, 1.0], [0.5, 0.4]) is None


def test_intervals_of_noisy_power_laws_mostly_hold_the_exponent() -> None:
    compute, covered = np.array([1.0, 2.0, 4.0, 8.0] * 3), 0
    for seed in range(20):
        errors = 0.5 * compute**-0.3 * np.exp(np.random.default_rng(seed).normal(0, 0.05, 12))
        law = power_law(compute.tolist(), errors.tolist())
        covered += law.low < 0.3 < law.high
    assert 16 <= covered <= 20
