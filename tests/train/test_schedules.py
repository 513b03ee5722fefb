"""Schedules against the formulas of the paper, written out."""

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vitrail.base.errors import ConfigError
from vitrail.train.schedules import Schedule


def _reference(step: int, steps: int, peak: float, end: float, warmup: int, shape: str) -> float:
    """The rule of the reference release: update t, from 1, has the rate of step t there."""
    progress = min(max((step - warmup) / (steps - warmup), 0.0), 1.0)
    linear, cosine = end + (peak - end) * (1 - progress), peak * 0.5 * (1 + math.cos(math.pi * progress))
    rate = linear if shape == "linear" else cosine
    return rate * min(1.0, (step + 1) / warmup) if warmup else rate


@pytest.mark.parametrize("shape", ["linear", "cosine"])
@given(step=st.integers(0, 999), warmup=st.integers(0, 500))
def test_the_rate_is_the_papers(shape: str, step: int, warmup: int) -> None:
    schedule = Schedule(shape=shape, peak=3e-3, end=1e-5 if shape == "linear" else 0.0, warmup_steps=warmup)  # type: ignore[arg-type]
    expected = _reference(step, 1000, 3e-3, 1e-5 if shape == "linear" else 0.0, warmup, shape)
    assert schedule.rate(step, 1000) == pytest.approx(expected, rel=1e-12)


@given(step=st.integers(0, 99))
def test_a_constant_rate_is_constant_after_the_warm_up(step: int) -> None:
    rate = Schedule(shape="constant", peak=1.0, warmup_steps=10).rate(step, 100)
    assert rate == (1.0 if step >= 9 else (step + 1) / 10)


def test_the_cool_down_falls_in_a_straight_line_to_its_end() -> None:
    schedule = Schedule(shape="constant", peak=1.0, end=0.1, cooldown_steps=9)
    rates = [schedule.rate(step, 100) for step in range(90, 100)]
    falls = [one - other for one, other in itertools.pairwise(rates)]
    assert rates[0] == 1.0
    assert rates[-1] == pytest.approx(0.1 + 0.9 / 10)
    assert falls == pytest.approx([0.09] * 9)


@given(st.sampled_from(["linear", "cosine", "constant"]), st.integers(0, 40), st.integers(0, 40))
def test_the_rate_never_leaves_the_range_from_0_to_the_peak(shape: str, warmup: int, cooldown: int) -> None:
    schedule = Schedule(shape=shape, peak=0.5, warmup_steps=warmup, cooldown_steps=cooldown)  # type: ignore[arg-type]
    schedule.check(80)
    assert all(0 <= schedule.rate(step, 80) <= 0.5 for step in range(80))


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"shape": "cosin"}, "Did you mean cosine"),
        ({"peak": 0.0}, "above 0"),
        ({"peak": 0.1, "end": 0.2}, "between 0 and the first"),
        ({"warmup_steps": -1}, "fewer than 0"),
    ],
)
def test_what_is_no_schedule_is_refused(settings: dict, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        Schedule(**settings)


def test_a_run_shorter_than_its_warm_up_is_refused() -> None:
    with pytest.raises(ConfigError, match="do not fit into 10 steps"):
        Schedule(warmup_steps=11).check(10)
