"""Contests on a clock that is known: pairs, medians, intervals, and the order within a round."""

import random
import statistics

import pytest

from tests.benchmarks.programs import program

contest = program("contest")


class Machine:
    """A clock that programs move forward by themselves, on a machine that is slow in some rounds."""

    def __init__(self) -> None:
        self.now, self.order = 0.0, []

    def runner(self, name: str, seconds: float, slow: dict[int, float]):
        calls = iter(range(10**6))

        def run() -> None:
            self.order.append(name)
            self.now += seconds * slow.get(next(calls), 1.0)

        return run


def test_a_disturbance_of_whole_rounds_does_not_move_the_ratio() -> None:
    machine, slow = Machine(), {2: 9.0, 3: 2.5, 7: 30.0}
    runs = {"ours": machine.runner("ours", 1.0, slow), "peer": machine.runner("peer", 1.2, slow)}
    seconds = contest.race(runs, 8, clock=lambda: machine.now)
    ratio = contest.paired(seconds["ours"], seconds["peer"])
    assert (ratio.median, ratio.low, ratio.high) == pytest.approx((1.2, 1.2, 1.2))
    assert str(ratio) == "1.200x (1.200 to 1.200)"


def test_every_contestant_runs_once_a_round_in_an_order_of_its_own() -> None:
    machine = Machine()
    names = ("a", "b", "c")
    contest.race({name: machine.runner(name, 1.0, {}) for name in names}, 20, clock=lambda: machine.now)
    warm, *rounds = [tuple(machine.order[at : at + 3]) for at in range(0, len(machine.order), 3)]
    assert warm == names
    assert len(rounds) == 20
    assert all(sorted(each) == list(names) for each in rounds)
    assert len(set(rounds)) > 3


def test_the_interval_covers_the_true_median_as_often_as_it_says() -> None:
    """40 rounds of a ratio of 1.1 with noise, 60 times: 95% of the intervals should cover it, 85% or more here."""
    draw, covered = random.Random(1), 0  # noqa: S311
    for trial in range(60):
        ours = [draw.lognormvariate(0.0, 0.1) for _ in range(40)]
        theirs = [1.1 * draw.lognormvariate(0.0, 0.1) for _ in ours]
        ratio = contest.paired(ours, theirs, seed=trial)
        covered += ratio.low <= 1.1 <= ratio.high
        assert ratio.low <= ratio.median <= ratio.high
    assert 51 <= covered <= 60


def test_all_are_compared_with_the_fastest_peer() -> None:
    seconds = {"vitrail": [1.0, 2.0, 1.0], "vitrail (tanh)": [0.5] * 3, "slow": [9.0] * 3, "fast": [2.0, 4.0, 2.0]}
    timings = {timing.name: timing for timing in contest.compare(seconds, ours="vitrail", images=10)}
    assert timings["vitrail"].ratio == 2.0
    assert timings["fast"].ratio == 1.0
    assert timings["vitrail (tanh)"].images_per_second == 10 / statistics.median(seconds["vitrail (tanh)"])
    assert timings["slow"].interval[1] <= 4 / 9
    assert contest.fastest_peer({"a": [1.0], "b": [0.5]}, "") == "b"
