"""Curves from rows of metrics, thinned to what a chart can show."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

Points = Float[np.ndarray, "point"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Series:
    """One measurement over the steps of a run, in the order of the steps."""

    steps: Points
    """The steps at which it was measured."""
    values: Points
    """The measured values; always finite."""
    lost: tuple[float, ...] = ()
    """The steps at which the value was not finite."""

    def __len__(self) -> int:
        """Count the points."""
        return self.steps.shape[0]


def series(rows: Sequence[Mapping[str, object]], key: str) -> Series:
    """Collect one measurement from the rows that have it."""
    steps, values, lost = [], [], []
    for row in rows:
        step, value = _number(row.get("step")), _number(row.get(key)) if key in row else None
        if step is None or not np.isfinite(step) or value is None:
            continue
        if np.isfinite(value):
            steps.append(step)
            values.append(value)
        else:
            lost.append(step)
    at = np.asarray(steps, dtype=np.float64)
    order = np.argsort(at, kind="stable")
    return Series(steps=at[order], values=np.asarray(values, dtype=np.float64)[order], lost=tuple(sorted(lost)))


def thin(line: Series, most: int = 800) -> Series:
    """Keep at most `most` points: the ends, and the lowest and highest point of each stretch: peaks stay."""
    if len(line) <= most:
        return line
    keep = {0, len(line) - 1}
    for stretch in np.array_split(np.arange(len(line)), most // 2 - 1):
        keep.add(int(stretch[line.values[stretch].argmin()]))
        keep.add(int(stretch[line.values[stretch].argmax()]))
    places = np.asarray(sorted(keep))
    return Series(steps=line.steps[places], values=line.values[places], lost=line.lost)


def smooth(line: Series, stretches: int = 60) -> Series:
    """Average over stretches of equally many points: the trend without the noise."""
    parts = np.array_split(np.arange(len(line)), min(stretches, max(len(line), 1)))
    return Series(
        steps=np.asarray([line.steps[part].mean() for part in parts if part.size]),
        values=np.asarray([line.values[part].mean() for part in parts if part.size]),
    )


def _number(value: object) -> float | None:
    """Read a number of a row; JSON without NaN has null in its place."""
    if value is None:
        return float("nan")
    return float(value) if isinstance(value, int | float | np.number) else None
