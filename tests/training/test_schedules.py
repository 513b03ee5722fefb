"""Schedules against the formulas of the reference release, written out."""

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vitrail.base.errors import ConfigError
from vitrail.training.schedules import Schedule


def _release(t: int, total: int, base: float, decay: str, warmup: int, linear_end: float = 1e-5) -> float:
    """The rate at step t of the reference release: the decay with t, and a warm-up with t that begins at 0."""
    progress = min(max((t - warmup) / (total - warmup), 0.0), 1.0)
    rate = {
        "linear": linear_end + (base - linear_end) * (1.0 - progress),
        "cosine": base * 0.5 * (1.0 + math.cos(math.pi * progress)),
    }[decay]
    return rate * min(1.0, t / warmup) if warmup else rate


def _schedule(shape: str, warmup: int) -> Schedule:
    return Schedule(shape=shape, peak=3e-3, end=1e-5 if shape == "linear" else 0.0, warmup_steps=warmup)  # type: ignore[arg-type]


@pytest.mark.parametrize("shape", ["linear", "cosine"])
@given(step=st.integers(0, 999), warmup=st.integers(0, 500))
def test_the_rate_is_the_reference_releases_but_one_step_ahead_while_it_warms_up(
    shape: str, step: int, warmup: int
) -> None:
    there = step + 1 if step < warmup else step
    expected = _release(there, 1000, 3e-3, shape, warmup)
    assert _schedule(shape, warmup).rate(step, 1000) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("shape", ["linear", "cosine"])
def test_the_first_update_has_its_part_of_the_peak_and_the_last_of_the_warm_up_all_of_it(shape: str) -> None:
    rates = [_schedule(shape, 10).rate(step, 1000) for step in range(12)]
    assert _release(0, 1000, 3e-3, shape, 10) == 0  # the release's first step moves nothing
    assert rates[0] == pytest.approx(3e-4)
    assert rates[9] == rates[10] == 3e-3 > rates[11]


def test_the_update_after_the_last_would_have_the_end() -> None:
    linear = _schedule("linear", 10)
    assert linear.rate(1000, 1000) == pytest.approx(1e-5)
    assert linear.rate(999, 1000) == pytest.approx(1e-5 + (3e-3 - 1e-5) / 990)
    assert _schedule("cosine", 10).rate(1000, 1000) == pytest.approx(0, abs=1e-12)


def test_a_cosine_does_not_fall_below_its_end() -> None:
    schedule = Schedule(shape="cosine", peak=1.0, end=0.25)
    rates = [schedule.rate(step, 100) for step in range(100)]
    assert rates == pytest.approx([max(0.25, 0.5 + 0.5 * math.cos(math.pi * step / 100)) for step in range(100)])
    assert rates[-1] == 0.25


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
        ({"peak": 0.0}, "from 1e-30"),
        ({"peak": 1e-320}, "from 1e-30"),
        ({"peak": 1e308}, r"to 1e\+30"),
        ({"peak": math.inf}, r"to 1e\+30"),
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
