"""Figures of the server in the text format of Prometheus: counters, gauges and histograms."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence

Labels = tuple[tuple[str, str], ...]

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
IMAGES = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)


class Counter:
    """Counts that only grow, by labels."""

    kind = "counter"

    def __init__(self, name: str, text: str) -> None:
        self.name, self.text = name, text
        self._values: dict[Labels, float] = {}

    def add(self, amount: float = 1.0, **labels: str) -> None:
        """Add to the count."""
        key = tuple(sorted(labels.items()))
        self._values[key] = self._values.get(key, 0.0) + amount

    def total(self, **labels: str) -> float:
        """Return the sum of all counts with these labels."""
        wanted = set(labels.items())
        return sum(value for key, value in self._values.items() if wanted <= set(key))

    def samples(self) -> Iterator[str]:
        """Write the values, a line each."""
        for key, value in sorted(self._values.items()) or [((), 0.0)]:
            yield _sample(self.name, key, value)


class Gauge:
    """Values as they are now."""

    kind = "gauge"

    def __init__(self, name: str, text: str, values: dict[Labels, float]) -> None:
        self.name, self.text, self._values = name, text, values

    def samples(self) -> Iterator[str]:
        """Write the values, a line each."""
        for key, value in sorted(self._values.items()):
            yield _sample(self.name, key, value)


class Histogram:
    """How often a value was at most each of some bounds."""

    kind = "histogram"

    def __init__(self, name: str, text: str, bounds: Sequence[float]) -> None:
        self.name, self.text, self.bounds = name, text, tuple(bounds)
        self._counts: dict[Labels, list[int]] = {}
        self._sums: dict[Labels, float] = {}

    def add(self, value: float, **labels: str) -> None:
        """Count one value."""
        key = tuple(sorted(labels.items()))
        counts = self._counts.setdefault(key, [0] * (len(self.bounds) + 1))
        counts[bisect_left(self.bounds, value)] += 1
        self._sums[key] = self._sums.get(key, 0.0) + value

    def samples(self) -> Iterator[str]:
        """Write the buckets, each with those below it, the sum and the count."""
        for key, counts in sorted(self._counts.items()):
            below = 0
            for bound, count in zip((*self.bounds, float("inf")), counts, strict=True):
                below += count
                yield _sample(f"{self.name}_bucket", (*key, ("le", _number(bound))), float(below))
            yield _sample(f"{self.name}_sum", key, self._sums[key])
            yield _sample(f"{self.name}_count", key, float(below))


def exposition(metrics: Sequence[Counter | Gauge | Histogram]) -> str:
    """Write all figures as Prometheus reads them."""
    lines: list[str] = []
    for metric in metrics:
        lines += [f"# HELP {metric.name} {metric.text}", f"# TYPE {metric.name} {metric.kind}", *metric.samples()]
    return "\n".join(lines) + "\n"


def _sample(name: str, labels: Labels, value: float) -> str:
    inside = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels)
    return f"{name}{{{inside}}} {_number(value)}" if inside else f"{name} {_number(value)}"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _number(value: float) -> str:
    if value == float("inf"):
        return "+Inf"
    return str(int(value)) if value == int(value) else repr(float(value))
