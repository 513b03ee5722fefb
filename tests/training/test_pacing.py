"""Runs with minutes end when the minutes end, on machines whose speed changes, and repeat what they decided."""

from collections.abc import Callable
from pathlib import Path

import pytest

from vitrail.base.lines import read_rows
from vitrail.base.ranks import Ranks
from vitrail.training.pacing import Pacer, Stages, cost

SECONDS, EVERY, EVALUATION, FINISH = 300.0, 100, 2.0, 3.0


class Machine:
    """A clock that runs by the work that is done; `slowness` tells how many times slower it is at a moment."""

    def __init__(self, slowness: Callable[[float], float]) -> None:
        self.now, self.slowness = 0.0, slowness
        self.evaluations: list[int] = []

    def work(self, seconds: float) -> float:
        before = self.now
        self.now += seconds * self.slowness(self.now)
        return self.now - before


def _run(
    machine: Machine,
    path: Path,
    *,
    start: int = 0,
    spent: float = 0.0,
    until: int | None = None,
    planned: int = 2450,
    stages: Stages = (),
) -> list[int]:
    """Return the number of steps that each step was planned with."""
    pacer = Pacer(
        seconds=SECONDS,
        steps=planned,
        stages=stages,
        evaluate_every=EVERY,
        evaluation=EVALUATION,
        path=path,
        ranks=Ranks(),
        clock=lambda: machine.now,
    )
    pacer.begin(start, spent)
    plans, step = [], start
    while step < pacer.steps and step != until:
        pacer.check(step)
        plans.append(pacer.steps)
        machine.work(0.1 * next((own for end, own in stages if step < end), 1.0))
        step += 1
        if step % (EVERY * pacer.stretch) == 0 or step == pacer.steps:
            machine.evaluations.append(step)
            pacer.pause(machine.work(EVALUATION), evaluated=True)
    machine.work(FINISH)
    return plans


@pytest.mark.parametrize(
    "slowness",
    [
        lambda _: 1.0,
        lambda _: 3.0,
        lambda now: 3.0 if now < SECONDS / 2 else 1.0,
        lambda now: 1.0 if now < SECONDS / 2 else 3.0,
        lambda now: 3.0 if int(now / 20) % 2 else 1.0,
        lambda now: 1.0 if now < 0.9 * SECONDS else 3.0,
    ],
    ids=["quiet", "always slow", "first half", "second half", "on and off", "last tenth"],
)
def test_a_run_ends_when_its_minutes_end(slowness: Callable[[float], float], tmp_path: Path) -> None:
    machine = Machine(slowness)
    _run(machine, tmp_path / "pace.jsonl")
    assert 0.9 * SECONDS <= machine.now <= 1.04 * SECONDS


def test_a_quiet_machine_hardly_changes_the_plan(tmp_path: Path) -> None:
    plans = _run(Machine(lambda _: 1.0), tmp_path / "pace.jsonl")
    assert max(plans) <= 1.05 * min(plans)


def test_a_plan_that_grows_does_not_evaluate_more_often(tmp_path: Path) -> None:
    machine = Machine(lambda now: 12.0 if now < 20 else 1.0)
    plans = _run(machine, tmp_path / "pace.jsonl", planned=200)
    assert plans[-1] > 8 * 200
    assert len(machine.evaluations) <= 5  # 200 steps would have had 2, and 2,000 of them 20
    assert 0.9 * SECONDS <= machine.now <= 1.04 * SECONDS


def test_a_resumed_run_repeats_what_was_decided(tmp_path: Path) -> None:
    path = tmp_path / "pace.jsonl"
    plans = _run(Machine(lambda now: 3.0 if now < 90 else 1.0), path, until=1000)
    lines = read_rows(path)
    assert len(lines) > 3
    again = _run(Machine(lambda _: 0.5), path, start=400, spent=70.0, until=lines[-1]["step"] + 1)
    assert again == plans[400 : lines[-1]["step"] + 1]
    assert read_rows(path) == lines


def test_a_resumed_run_evaluates_where_it_would_have(tmp_path: Path) -> None:
    path = tmp_path / "pace.jsonl"
    whole, resumed = (Machine(lambda now: 12.0 if now < 20 else 1.0) for _ in range(2))
    _run(whole, path, planned=200, until=1700)
    _run(resumed, path, planned=200, start=600, spent=100.0, until=1700)
    assert len(whole.evaluations) >= 2
    assert resumed.evaluations == [step for step in whole.evaluations if step > 600]


def test_time_before_a_resume_counts(tmp_path: Path) -> None:
    machine = Machine(lambda _: 1.0)
    plans = _run(machine, tmp_path / "pace.jsonl", start=1000, spent=200.0)
    assert machine.now == pytest.approx(100.0, rel=0.04)
    assert plans[-1] < 2000


def test_stages_of_small_images_do_not_make_the_plan_grow(tmp_path: Path) -> None:
    stages = [(1000, 0.25), (2000, 0.5)]
    assert [cost(step, stages) for step in (0, 400, 1000, 1500, 2100)] == [0, 100, 250, 500, 850]
    machine = Machine(lambda _: 1.0)
    # 2,000 cheap steps take 75 s; with an evaluation of 2 s after each 100, the rest of 295 s has 1,500 whole ones
    plans = _run(machine, tmp_path / "pace.jsonl", planned=3500, stages=stages)
    assert machine.now == pytest.approx(SECONDS, abs=5)
    assert min(plans) > 0.97 * plans[-1]
    assert max(plans) < 1.03 * plans[-1]


def test_a_plan_may_end_within_a_stage(tmp_path: Path) -> None:
    machine = Machine(lambda _: 8.0)
    plans = _run(machine, tmp_path / "pace.jsonl", planned=3500, stages=[(1000, 0.25), (2000, 0.5)])
    assert 500 < plans[-1] < 1000
    assert machine.now == pytest.approx(SECONDS, rel=0.1)
