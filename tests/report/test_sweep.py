"""What fine-tuning tried, read back from its section: a table, and a chart over the logarithm of the rate."""

import numpy as np
import pytest

from tests.report.pages import curve, read, tables, ticks, words
from vitrail.report.sweep import SeedScore, TriedRate, seeds_section, sweep_section

ROWS = [
    TriedRate(rate=0.03, accuracy=0.8125, loss=0.51239, images=1600),
    TriedRate(rate=0.003, accuracy=0.5, loss=1.25, images=1600),
    TriedRate(rate=0.01, accuracy=0.875, loss=0.375, images=1600),
]


def test_every_rate_is_listed_in_rising_order_and_the_best_is_named() -> None:
    page = read(sweep_section(ROWS, 0.01).html)
    assert tables(page) == [
        [
            ["learning rate", "dev accuracy", "dev loss"],
            ["0.003", "50.00%", "1.2500"],
            ["0.01", "87.50%", "0.3750"],
            ["0.03", "81.25%", "0.5124"],
        ]
    ]
    assert "the 1,600 of the dev split" in words(page)
    assert "The best, 0.01, then trained on all training images" in words(page)


def test_the_chart_has_a_point_for_each_rate_and_marks_the_best() -> None:
    page = read(sweep_section(ROWS, 0.01).html)
    (across, up), points = ticks(page), curve(page, "first")
    np.testing.assert_allclose(across[:, 1], [0.003, 0.01, 0.03])
    np.testing.assert_allclose(points[:, 0], across[:, 0], atol=0.2)
    slope = np.polyfit(np.log(across[:, 1]), across[:, 0], 1)
    np.testing.assert_allclose(np.polyval(slope, np.log(across[:, 1])), across[:, 0], atol=0.2)
    accuracies = np.polyval(np.polyfit(up[:, 0], up[:, 1], 1), points[:, 1])
    np.testing.assert_allclose(accuracies, [0.5, 0.875, 0.8125], atol=0.005)
    (mark,) = (node for node in page.iter("use") if "var(--second)" in node.get("style", ""))
    assert (float(mark.get("x", "")), float(mark.get("y", ""))) == pytest.approx(tuple(points[1]), abs=0.2)


def test_other_seeds_are_listed() -> None:
    rows = [SeedScore(seed=1, accuracy=0.9), SeedScore(seed=3, accuracy=0.912345)]
    assert tables(read(seeds_section(rows).html)) == [[["seed", "accuracy"], ["1", "90.00%"], ["3", "91.23%"]]]
