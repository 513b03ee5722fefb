import numpy as np
import pytest

from vitrail.analysis.norms import find_outliers, otsu


def test_planted_outliers_are_found_with_their_share() -> None:
    generator = np.random.default_rng(0)
    lengths = np.concatenate([generator.normal(40, 4, 9_760), generator.normal(220, 30, 240)])
    found = find_outliers(lengths)
    assert found.share == pytest.approx(0.024, abs=0.0005)
    assert 60 < found.threshold < 130
    assert found.counts.sum() == 10_000


@pytest.mark.parametrize(
    "draw",
    [
        lambda generator: generator.normal(40, 4, 5_000),
        lambda generator: generator.lognormal(3, 0.8, 5_000),
        lambda generator: generator.uniform(10, 90, 5_000),
        lambda generator: generator.exponential(10, 5_000),
        lambda _: np.full(100, 3.0),
        lambda _: np.zeros(100),
    ],
)
def test_lengths_of_one_kind_have_no_outliers(draw) -> None:
    found = find_outliers(draw(np.random.default_rng(1)))
    assert found.threshold is None
    assert found.share == 0


def test_the_threshold_leaves_the_least_variance_within_the_two_classes() -> None:
    values = np.concatenate([np.random.default_rng(2).normal(2, 0.4, 300), np.random.default_rng(3).normal(5, 0.6, 80)])
    counts, edges = np.histogram(values, bins=40)
    centres = (edges[1:] + edges[:-1]) / 2
    rows = np.repeat(np.arange(40), counts)

    def within(cut: int) -> float:
        low, high = centres[rows[rows < cut]], centres[rows[rows >= cut]]
        return len(low) * low.var() + len(high) * high.var()

    best = min(range(rows.min() + 1, rows.max() + 1), key=within)
    assert within(otsu(counts, centres)) == pytest.approx(within(best))
