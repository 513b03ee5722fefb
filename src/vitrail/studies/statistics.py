"""What can be said of a few seeds: mean and spread, a paired test, a power law with its interval."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

RESAMPLES = 1000


@dataclass(frozen=True, kw_only=True)
class Spread:
    """Mean and standard deviation over seeds."""

    mean: float
    deviation: float | None
    """None with one seed."""
    count: int


@dataclass(frozen=True, kw_only=True)
class PairedTest:
    """The difference of two variants over the seeds that both have (Student's paired test, two-sided)."""

    difference: float
    low: float
    high: float
    """The 95% interval of the difference."""
    p: float
    count: int

    @property
    def chance(self) -> str:
        """The probability in words."""
        return f"p = {self.p:.3f}" if self.p >= 0.001 else "p < 0.001"

    @property
    def shown(self) -> bool:
        """Whether the difference is above 0 beyond the seeds' noise, at 5%."""
        return self.p < 0.05 and self.difference > 0


@dataclass(frozen=True, kw_only=True)
class PowerLaw:
    """error = factor * compute^-exponent."""

    factor: float
    exponent: float
    low: float
    high: float
    """The 95% interval of the exponent, over resampled cells."""

    def compute_for(self, error: float) -> float:
        """Return the compute that reaches an error."""
        return float((self.factor / error) ** (1 / self.exponent)) if self.exponent > 0 else math.inf


def spread(values: Sequence[float]) -> Spread | None:
    """Return mean and sample deviation; None without values."""
    if not values:
        return None
    deviation = float(np.std(values, ddof=1)) if len(values) > 1 else None
    return Spread(mean=float(np.mean(values)), deviation=deviation, count=len(values))


def paired_test(better: Mapping[int, float], worse: Mapping[int, float]) -> PairedTest | None:
    """Compare two variants by seed; None with fewer than two seeds in both."""
    seeds = sorted(better.keys() & worse.keys())
    if len(seeds) < 2:
        return None
    differences = np.array([better[seed] - worse[seed] for seed in seeds])
    mean, count = float(differences.mean()), len(seeds)
    error = float(differences.std(ddof=1)) / math.sqrt(count)
    if error == 0:
        return PairedTest(difference=mean, low=mean, high=mean, p=1.0 if mean == 0 else 0.0, count=count)
    reach = student_quantile(count - 1) * error
    p = student_p(mean / error, count - 1)
    return PairedTest(difference=mean, low=mean - reach, high=mean + reach, p=p, count=count)


def student_p(t: float, freedom: int) -> float:
    """Return the two-sided probability of |t| under Student's distribution, by its finite series (A&S 26.7.3-4)."""
    angle = math.atan(abs(t) / math.sqrt(freedom))
    sine, cosine = math.sin(angle), math.cos(angle)
    if freedom % 2:
        terms, term = 0.0, cosine
        for k in range(1, freedom - 1, 2):
            terms += term
            term *= cosine * cosine * (k + 1) / (k + 2)
        inside = 2 / math.pi * (angle + sine * terms)
    else:
        terms, term = 0.0, 1.0
        for k in range(0, freedom - 1, 2):
            terms += term
            term *= cosine * cosine * (k + 1) / (k + 2)
        inside = sine * terms
    return min(max(1 - inside, 0.0), 1.0)


def student_quantile(freedom: int, p: float = 0.05) -> float:
    """Return the t whose two-sided probability is p."""
    low, high = 0.0, 1e4
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if student_p(middle, freedom) > p else (low, middle)
    return high


def power_law(compute: Sequence[float], error: Sequence[float], seed: int = 0) -> PowerLaw | None:
    """Fit a line to the logarithms, with an interval over resampled points; None with fewer than two computes."""
    pairs = [(x, y) for x, y in zip(compute, error, strict=True) if x > 0 and y > 0]
    if len({x for x, _ in pairs}) < 2:
        return None
    x, y = np.log([x for x, _ in pairs]), np.log([y for _, y in pairs])
    slope, start = _line(x, y)
    generator = np.random.default_rng(seed)
    slopes = []
    for _ in range(RESAMPLES):
        rows = generator.integers(0, len(x), len(x))
        if len(set(x[rows].tolist())) > 1:
            slopes.append(_line(x[rows], y[rows])[0])
    low, high = np.percentile(slopes, [2.5, 97.5])
    return PowerLaw(factor=math.exp(start), exponent=-slope, low=-float(high), high=-float(low))


def _line(x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    centred = x - x.mean()
    slope = float((centred * (y - y.mean())).sum() / (centred**2).sum())
    return slope, float(y.mean() - slope * x.mean())
