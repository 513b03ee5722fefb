"""The curves of a page, read back from its drawings and compared with the rows behind them."""

import math

import numpy as np
import pytest

from tests.report.pages import curve_points, figure, legend, read, tables, ticks, words
from tests.report.stories import rows_of
from vitrail.report.curves import curves, percent_axis

ROWS = rows_of(100, every=20)
SHORT = rows_of(20, every=5)
CHARTS = [
    ("Loss", "first", "loss"),
    ("Loss", "second", "val_loss"),
    ("Accuracy", "first", "accuracy"),
    ("Accuracy", "second", "val_accuracy"),
    ("Learning rate", "third", "learning_rate"),
    ("Gradient norm", "fourth", "gradient_norm"),
]


def _points(rows: list[dict[str, float]], key: str) -> np.ndarray:
    return np.array([(row["step"], row[key]) for row in rows if key in row])


@pytest.mark.parametrize(("heading", "role", "key"), CHARTS)
def test_every_measurement_is_drawn_where_the_rows_have_it(heading: str, role: str, key: str) -> None:
    points, expected = curve_points(figure(read(curves(ROWS, "val").html), heading), role), _points(ROWS, key)
    assert points.shape == expected.shape
    height = np.ptp(np.array([row[k] for row in ROWS for h, _, k in CHARTS if h == heading and k in row]))
    np.testing.assert_allclose(points[:, 0], expected[:, 0], atol=100 / 400)  # a pixel
    np.testing.assert_allclose(points[:, 1], expected[:, 1], atol=height / 200)


def test_the_top_5_accuracy_is_drawn_where_there_is_one() -> None:
    rows = [*SHORT, {"step": 10, "val_top5": 0.75}, {"step": 20, "val_top5": 0.875}]
    chart = figure(read(curves(rows, "val").html), "Accuracy")
    np.testing.assert_allclose(curve_points(chart, "third"), [(10, 0.75), (20, 0.875)], rtol=0.01)
    assert list(legend(chart).values())[-1] == "87.5%"


def test_beside_a_chart_stands_the_last_value_and_the_highest_rate() -> None:
    page = read(curves(ROWS, "val").html)
    loss, accuracy = (list(legend(figure(page, heading)).values()) for heading in ("Loss", "Accuracy"))
    for label, key in zip(loss, ("loss", "val_loss"), strict=True):
        assert float(label) == pytest.approx(_points(ROWS, key)[-1, 1], rel=5e-3)
    for label, key in zip(accuracy, ("accuracy", "val_accuracy"), strict=True):
        assert label.endswith("%")
        assert float(label[:-1]) == pytest.approx(100 * _points(ROWS, key)[-1, 1], rel=5e-3)
    (rate,) = legend(figure(page, "Learning rate")).values()
    assert float(rate) == pytest.approx(_points(ROWS, "learning_rate")[:, 1].max(), rel=5e-3)


def test_a_long_noisy_curve_is_drawn_as_its_average_and_a_rate_as_it_is() -> None:
    rows = rows_of(240, every=24)
    page, loss = read(curves(rows, "val").html), _points(rows, "loss")
    means = loss.reshape(60, 4, 2).mean(axis=1)
    np.testing.assert_allclose(curve_points(figure(page, "Loss"), "first"), means, atol=0.7)
    np.testing.assert_allclose(curve_points(figure(page, "Loss"), "first")[:, 1], means[:, 1], atol=0.02)
    faint = [node for node in figure(page, "Loss").iter("path") if "opacity:0.28" in node.get("style", "")]
    assert len(faint) == 1
    assert len(curve_points(figure(page, "Loss"), "second")) == 10
    assert curve_points(figure(page, "Learning rate"), "third")[:, 1].max() == pytest.approx(1e-3, rel=0.06)


def test_a_loss_over_many_powers_of_ten_has_a_logarithmic_axis() -> None:
    rows = [{"step": step, "loss": 10.0 ** -(step / 10), "accuracy": 10.0 ** -(step / 10)} for step in range(1, 51)]
    page = read(curves(rows, "val").html)
    pixels, values = ticks(figure(page, "Loss"))[1].T
    assert len(values) >= 3
    np.testing.assert_allclose(np.log10(values) % 1, 0, atol=1e-9)
    slope = np.polyfit(pixels, np.log10(values), 1)
    np.testing.assert_allclose(np.polyval(slope, pixels), np.log10(values), atol=0.01)
    curve_points(figure(page, "Accuracy"), "first")  # it asserts that the axis is linear


def test_the_length_of_the_run_is_shown() -> None:
    assert "100 in all" in words(read(curves(ROWS, "val").html))
    assert "1,500 in all" in words(read(curves([{"step": 1500, "loss": 1.0}], "val").html))


@pytest.mark.parametrize(("split", "label"), [("val", "validation"), ("test", "test"), (None, "held out")])
def test_the_curves_of_held_out_images_have_the_name_of_their_split(split: str | None, label: str) -> None:
    page = read(curves(SHORT, split).html)
    assert list(legend(figure(page, "Loss"))) == list(legend(figure(page, "Accuracy"))) == ["training", label]


def test_a_loss_that_was_not_a_number_is_noted_with_its_step() -> None:
    once = [*SHORT, {"step": 21, "loss": math.nan}]
    assert "once, at step 21" in words(figure(read(curves(once, "val").html), "Loss"))
    assert "2 times, first at step 21" in words(
        figure(read(curves([*once, {"step": 23, "loss": None}], "val").html), "Loss")
    )
    alone = figure(read(curves([{"step": 2, "loss": math.nan}], "val").html), "Loss")
    assert "once, at step 2" in words(alone)
    assert not list(alone.iter("svg"))
    assert "finite" not in words(read(curves(SHORT, "val").html))


def test_charts_without_rows_are_left_out_and_without_any_the_page_says_so() -> None:
    page = read(curves([{"step": 1, "loss": 2.0}], "val").html)
    assert [words(node) for node in page.iter("h3")] == ["Loss"]
    np.testing.assert_allclose(curve_points(figure(page, "Loss"), "first"), [(1, 2.0)], atol=0.02)
    nothing = read(curves([], "val").html)
    assert not list(nothing.iter("svg"))
    assert "Nothing has been measured yet" in words(nothing)
    assert tables(nothing) == []


def test_shares_are_written_as_percent() -> None:
    assert [percent_axis(value) for value in (0.925, 0.9, 1.0, 0.0)] == ["92.5%", "90%", "100%", "0%"]
