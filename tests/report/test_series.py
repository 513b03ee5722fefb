"""Curves from rows: what is collected, what a chart leaves out, and what it averages."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vitrail.report.series import Series, series, smooth, thin

VALUES = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=300)


def _line(values: list[float]) -> Series:
    return Series(steps=np.arange(1.0, len(values) + 1), values=np.array(values, dtype=np.float64))


def test_rows_are_collected_in_the_order_of_their_steps() -> None:
    rows = [
        {"step": 30, "loss": 1},
        {"step": 10, "loss": 3.0},
        {"step": 20, "val_loss": 9.0},
        {"step": 20, "loss": 2.0},
    ]
    points = series(rows, "loss")
    assert points.steps.tolist() == [10, 20, 30]
    assert points.values.tolist() == [3, 2, 1]
    assert points.lost == ()
    assert len(series(rows, "val_loss")) == 1
    assert len(series(rows, "accuracy")) == 0


def test_values_that_are_not_numbers_are_counted_and_not_drawn() -> None:
    rows = [{"step": 3, "loss": math.nan}, {"step": 2, "loss": None}, {"step": 1, "loss": math.inf}]
    points = series([*rows, {"step": 4, "loss": 0.5}, {"step": 5, "loss": "low"}], "loss")
    assert (points.steps.tolist(), points.values.tolist(), points.lost) == ([4], [0.5], (1, 2, 3))


@pytest.mark.parametrize("row", [{"loss": 1.0}, {"step": None, "loss": 1.0}, {"step": math.nan, "loss": 1.0}])
def test_a_value_without_a_step_is_left_out(row: dict[str, float]) -> None:
    points = series([row], "loss")
    assert (len(points), points.lost) == (0, ())


@given(VALUES, st.integers(4, 40))
def test_a_thinned_curve_keeps_its_ends_and_its_peaks(values: list[float], most: int) -> None:
    line = _line(values)
    points = thin(line, most)
    assert len(points) <= max(most, 0) or len(values) <= most
    assert (points.steps[0], points.steps[-1]) == (1, len(values))
    assert (points.values.min(), points.values.max()) == (min(values), max(values))
    assert (np.diff(points.steps) > 0).all()
    assert all(values[int(step) - 1] == value for step, value in zip(points.steps, points.values, strict=True))
    if len(values) <= most:
        assert len(points) == len(values)


def test_a_smooth_curve_has_the_means_of_equal_stretches() -> None:
    values = np.random.default_rng(0).normal(size=240)
    points = smooth(_line(values.tolist()), 60)
    np.testing.assert_allclose(points.values, values.reshape(60, 4).mean(axis=1))
    np.testing.assert_allclose(points.steps, np.arange(1.0, 241).reshape(60, 4).mean(axis=1))


@given(VALUES)
def test_a_curve_shorter_than_the_stretches_stays_as_it_is(values: list[float]) -> None:
    line = _line(values)
    np.testing.assert_array_equal(smooth(line, 300).values, line.values)
