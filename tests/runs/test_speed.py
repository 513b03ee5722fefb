"""A time becomes a number of steps, with room for the looks at held-out images."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.training.making import made_config, made_run
from vitrail.runs import speed
from vitrail.runs.request import EVALUATIONS, FEWEST_EVALUATIONS, evaluate_every
from vitrail.runs.speed import Pace, pace, steps_for


def test_a_pace_is_measured(tmp_path: Path) -> None:
    run = made_run(tmp_path / "run", made_config())
    found = pace(run, for_seconds=0.05)
    assert 0 < found.evaluation < 60
    assert 0 < found.step < 60
    assert not list((tmp_path / "run").iterdir())


def test_steps_fill_the_time_and_leave_room_for_evaluations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speed, "pace", lambda _: Pace(step=0.1, evaluation=2.0))
    run = made_run(tmp_path / "run", made_config())
    seconds = 60.0
    assert steps_for(run, 1.0, lambda steps: -(-steps // 3)) == pytest.approx((seconds - 6.0) / 0.1, abs=1)
    assert steps_for(run, 1.0, lambda _: 10) == pytest.approx(0.5 * seconds / 0.1, abs=1)
    assert steps_for(run, 0.001, lambda _: 1) == 10


@given(st.integers(1, 10**6), st.integers(1, 4096), st.integers(0, 10**5), st.integers(1, EVALUATIONS))
def test_looks_are_few_where_they_would_take_long(steps: int, batch: int, held: int, most: int) -> None:
    every = evaluate_every(steps, batch, held, most)
    looks = -(-steps // every)
    assert 1 <= looks <= most
    if looks > FEWEST_EVALUATIONS:
        assert looks * held / 3 <= 0.15 * steps * batch


def test_an_ordinary_run_looks_ten_times() -> None:
    assert evaluate_every(1000, 64, 0) == 100
    assert evaluate_every(1000, 64, 1000) == 100
