"""When a model that learns without labels has collapsed, and how that is said.

| measurement      | collapsed  | of the run   | meaning                                                       |
|------------------|------------|--------------|---------------------------------------------------------------|
| `probe_spread`   | below 0.02 | always       | features of held-out images point in nearly one direction     |
| `feature_spread` | below 0.02 | second half  | those of the images in a step do                              |
| `mean_entropy`   | below 0.02 | always       | DINO's teacher gives all images one and the same answer       |
| `teacher_entropy`| above 0.99 | second half  | it gives no answer: all outputs alike, its centre is dead     |

At random weights features lie close together and answers are even, hence the second half for two of them.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from vitrail.evaluation.spread import COLLAPSED

EVEN = 0.99
"""Share of the largest entropy above which answers are all alike."""


@dataclass(frozen=True, kw_only=True)
class Collapse:
    """A measurement that shows a collapse."""

    words: str
    below: float = 0.0
    above: float = float("inf")
    share: float = 0.0
    """The share of all steps from which on it counts."""

    def shown(self, value: float, step: int, steps: int) -> bool:
        """Return whether a value at a step means that the model has collapsed."""
        return step >= self.share * steps and (value < self.below or value > self.above)


ONE_DIRECTION = "the features of all images point in nearly one direction"
COLLAPSES = {
    "probe_spread": Collapse(words=ONE_DIRECTION, below=COLLAPSED),
    "feature_spread": Collapse(words=ONE_DIRECTION, below=COLLAPSED, share=0.5),
    "mean_entropy": Collapse(words="the teacher gives nearly one answer to all images", below=COLLAPSED),
    "teacher_entropy": Collapse(words="the teacher finds all answers equally good", above=EVEN, share=0.5),
}


def collapse_notes(values: Mapping[str, float], step: int, steps: int) -> dict[str, str]:
    """Return a sentence for each measurement of a step that shows a collapse."""
    return {
        name: f"{sign.words}: the model has collapsed ({name} is {values[name]:.3f} at step {step})."
        for name, sign in COLLAPSES.items()
        if name in values and sign.shown(values[name], step, steps)
    }
