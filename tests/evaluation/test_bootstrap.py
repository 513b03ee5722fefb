import numpy as np
import pytest
from scipy import stats

from vitrail.base.errors import ConfigError
from vitrail.evaluation.bootstrap import bootstrap


def _mean_of(values: np.ndarray):
    return lambda draws: {"mean": float(draws @ values / draws.sum())}


@pytest.mark.parametrize(("images", "share"), [(400, 0.9), (60, 0.5)])
def test_the_interval_of_a_share_has_the_ends_of_the_binomial_distribution(images: int, share: float) -> None:
    right = (np.arange(images) < share * images).astype(float)
    interval = bootstrap(_mean_of(right), images, resamples=20_000)["mean"]
    assert interval.value == right.mean()
    expected = stats.binom.ppf([0.025, 0.975], images, right.mean()) / images
    assert (interval.low, interval.high) == pytest.approx(tuple(expected), abs=1.01 / images)


def test_the_interval_of_a_mean_is_that_of_scipy() -> None:
    values = np.random.default_rng(0).exponential(size=80)
    interval = bootstrap(_mean_of(values), 80, resamples=8_000)["mean"]
    scipys = stats.bootstrap(
        (values,), np.mean, method="percentile", n_resamples=8_000, rng=np.random.default_rng(1)
    ).confidence_interval
    assert (interval.low, interval.high) == pytest.approx(
        (scipys.low, scipys.high), abs=0.15 * (scipys.high - scipys.low)
    )


def test_the_same_seed_gives_the_same_interval_and_another_seed_another() -> None:
    values = np.arange(50.0)
    one, same, other = (bootstrap(_mean_of(values), 50, resamples=200, seed=seed) for seed in (3, 3, 4))
    assert one == same
    assert one["mean"].value == other["mean"].value
    assert one["mean"].low != other["mean"].low


def test_every_resample_draws_as_many_images_as_there_are() -> None:
    resamples = []

    def figures(draws: np.ndarray) -> dict[str, float]:
        resamples.append(draws)
        return {"none": 0.0}

    bootstrap(figures, 30, resamples=150)
    assert len(resamples) == 151
    assert all(draws.shape == (30,) and draws.sum() == 30 for draws in resamples)


def test_too_few_resamples_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"`resamples` is 99, .* at least 100"):
        bootstrap(_mean_of(np.ones(3)), 3, resamples=99)
