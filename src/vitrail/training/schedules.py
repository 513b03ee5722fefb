"""The learning rate as a pure function of the step (Table 3, App. B.1)."""

import math
from dataclasses import dataclass
from typing import Literal, get_args

from vitrail.base.errors import ConfigError, did_you_mean

SMALLEST_RATE, LARGEST_RATE = 1e-30, 1e30
"""What optimisers can multiply by in float32, and charts can show: torch and matplotlib fail or hang far beyond."""
Shape = Literal["linear", "cosine", "constant"]


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """Warm up to the peak, follow a shape, optionally cool down towards `end`.

    With w steps of warm-up and T steps in all, update t, from 0, has progress p = clip((t - w) / (T - w), 0, 1), and
    its rate is min(1, (t + 1) / w) times: end + (peak - end)(1 - p) for `linear`, peak * (1 + cos(pi p)) / 2 for
    `cosine`, but never below `end`, peak for `constant`. The reference release warms up by t / w, so that its first
    update moves nothing; here each update of the warm-up has the rate of the one after it there.
    """

    shape: Shape = "cosine"
    """How the rate falls after the warm-up."""
    peak: float = 1e-3
    """The highest rate."""
    end: float = 0.0
    """The rate's target for `linear` and in the cool-down: the update after the last would have it; for
    `cosine`, the least rate."""
    warmup_steps: int = 0
    """Steps in which the rate rises: the first has this part of the peak, the last all of it."""
    cooldown_steps: int = 0
    """Last steps in which the rate falls linearly from where the shape has it towards `end`."""

    def __post_init__(self) -> None:
        """Refuse values outside their bounds."""
        if self.shape not in get_args(Shape):
            raise ConfigError(
                f"the schedule's shape is {self.shape!r}, but must be one of {', '.join(get_args(Shape))}."
                + did_you_mean(self.shape, get_args(Shape))
            )
        if not SMALLEST_RATE <= self.peak <= LARGEST_RATE or not 0 <= self.end <= self.peak:
            raise ConfigError(
                f"the learning rate goes from {self.peak} to {self.end}, but the first must be from "
                f"{SMALLEST_RATE} to {LARGEST_RATE}, and the second between 0 and the first."
            )
        if min(self.warmup_steps, self.cooldown_steps) < 0:
            raise ConfigError("warm-up and cool-down cannot have fewer than 0 steps.")

    def check(self, steps: int) -> None:
        """Refuse a run that is shorter than its warm-up and cool-down."""
        if self.warmup_steps + self.cooldown_steps > steps:
            raise ConfigError(
                f"{self.warmup_steps} steps of warm-up and {self.cooldown_steps} of cool-down do not fit into "
                f"{steps} steps; train longer or shorten them."
            )

    def rate(self, step: int, steps: int) -> float:
        """Return the learning rate of update `step`, from 0, out of `steps`."""
        warm = min(1.0, (step + 1) / self.warmup_steps) if self.warmup_steps else 1.0
        cooling_from = steps - self.cooldown_steps
        if self.cooldown_steps and step >= cooling_from:
            left = (steps - step) / (self.cooldown_steps + 1)
            return warm * (self.end + (self._shaped(cooling_from, steps) - self.end) * left)
        return warm * self._shaped(step, steps)

    def _shaped(self, step: int, steps: int) -> float:
        progress = min(max((step - self.warmup_steps) / max(steps - self.warmup_steps, 1), 0.0), 1.0)
        match self.shape:
            case "linear":
                return self.end + (self.peak - self.end) * (1 - progress)
            case "cosine":
                return max(self.end, self.peak * 0.5 * (1 + math.cos(math.pi * progress)))
            case _:
                return self.peak
