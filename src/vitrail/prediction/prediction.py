"""What a model answers for one image."""

from dataclasses import dataclass

from vitrail.base.errors import ImageError
from vitrail.base.table import Table, bar

Answer = tuple[tuple[int, float], ...] | ImageError
"""The most probable classes by number, the first one first; or why there is no answer."""
DIGITS = 7
"""Significant digits of a probability: what float32 carries."""


def rounded(value: float) -> float:
    """Return a probability with the digits that it has."""
    return float(f"{value:.{DIGITS}g}")


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """The most probable classes of one image."""

    name: str
    """The path of the image, or its place among those given."""
    top: tuple[tuple[str, float], ...]
    """The most probable classes with their probabilities, the first one first."""

    @property
    def label(self) -> str:
        """The most probable class."""
        return self.top[0][0]

    @property
    def probability(self) -> float:
        """The softmax probability of that class."""
        return self.top[0][1]

    def __str__(self) -> str:
        """Write it in a line."""
        return f"{self.name}: " + ", ".join(f"{label} {probability:.1%}" for label, probability in self.top)

    def _repr_html_(self) -> str:
        """Draw a bar for each class, for a notebook."""
        rows = tuple((label, f"{probability:.1%}", bar(probability)) for label, probability in self.top)
        return Table(title=self.name, columns=("class", "probability", ""), rows=rows).html()
