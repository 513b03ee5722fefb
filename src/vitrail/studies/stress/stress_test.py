"""One stress test: what it does to an image, at which strengths, and how its axis is written."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

from vitrail.base.shapes import Pixels
from vitrail.studies.stress.changes import Level
from vitrail.studies.stress.stage import Subject

Group = Literal["occlusion", "shuffle", "texture", "frequency", "corruptions", "views", "attacks", "resolution"]
GROUPS: tuple[Group, ...] = get_args(Group)
Kind = Literal["pixels", "attack", "resolution"]
Apply = Callable[[Subject, Level], Pixels]


@dataclass(frozen=True, kw_only=True)
class StressTest:
    """One way to make an image harder, at several strengths."""

    name: str
    group: Group
    title: str
    """What it does, as a heading."""
    axis: str
    """What its levels are."""
    levels: tuple[Level, ...]
    start: Level
    """The level that changes nothing, where the accuracy on clean images belongs."""
    shares: bool = False
    """Whether levels are shares, written as percentages."""
    kind: Kind = "pixels"
    """Whether every model gets the same pixels, is attacked, or gets images of another size."""
    apply: Apply | None = None
    """Changes the pixels of one image; None where that depends on the model."""
    salient: bool = False
    """Whether it needs to know the most salient cells."""

    def written(self, level: Level) -> str:
        """Write a level as its axis has it."""
        return f"{level:.4g}" if not self.shares else f"{100 * level:.3g}%"
