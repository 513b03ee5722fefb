import pytest

from vitrail.studies.statistics import Spread
from vitrail.verbs.study_result import written


@pytest.mark.parametrize(
    ("mean", "deviation", "text"),
    [
        (1490.6, 203.4, "1,491 +- 203"),
        (999.7, 99.6, "1,000 +- 100"),
        (12.345, 1.26, "12.3 +- 1.3"),
        (0.00123, None, "0.00123"),
        (64.0, 0.0, "64"),
    ],
)
def test_a_figure_is_written_without_an_exponent(mean, deviation, text) -> None:
    assert written(Spread(mean=mean, deviation=deviation, count=3), "images_per_second") == text


def test_shares_are_percentages() -> None:
    assert written(Spread(mean=0.4321, deviation=0.0123, count=3), "accuracy") == "43.21% +- 1.23"
    assert written(None, "accuracy") == "-"
