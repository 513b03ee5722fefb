"""The plan of a study in its folder: `study.json`; the cells, and how a budget of minutes becomes steps.

The rule: every cell of a study has the same number of steps; the two runs of a chain share them. Each variant's step
and evaluation are timed once, before the first cell; the steps are as many as make all cells together fill the minutes.
They are written into the plan, so that every process, and every resumed one, makes the same runs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from vitrail.base.errors import ConfigError, InputError
from vitrail.base.numbers import check_whole
from vitrail.base.reading import read_json
from vitrail.base.settings import from_dict, setting_differences, to_dict
from vitrail.runs.folder import write_json
from vitrail.studies.study import Variant, folder_name

PLAN, CELL = "study.json", "cell.json"
FEWEST_STEPS = 20
"""Fewest steps of a run: with fewer, every variant is at chance."""
OVERHEAD = 4.0
"""Seconds of a run outside its steps and its evaluations: data, model file, report."""


@dataclass(frozen=True, kw_only=True)
class StudyPlan:
    """What a folder is for: `study.json` is this."""

    study: str
    data: tuple[str, ...]
    variants: tuple[str, ...]
    seeds: int
    minutes: float | None
    steps: int
    """Updates of each cell."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """The settings of every variant, by its name."""
    images: tuple[str, ...] = ()
    """A digest of the names and classes of the images of each data set."""
    files: tuple[str, ...] = ()
    """A digest of their files: paths, sizes and times, or the numbers of arrays."""

    def __post_init__(self) -> None:
        """Refuse a plan that was edited into one that cannot be carried out."""
        check_whole("steps", self.steps)


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One variant with one seed."""

    variant: Variant
    seed: int
    folder: Path

    @property
    def name(self) -> str:
        """The cell in messages."""
        return f"{self.variant.name}, seed {self.seed}"

    @property
    def file(self) -> Path:
        """Where its figures are once it is finished."""
        return self.folder / CELL


@dataclass(frozen=True, kw_only=True)
class Pace:
    """What the cells of one variant take, in seconds, but for their number of steps."""

    step: float
    """Of each step of the plan: those of the two runs of a chain together."""
    fixed: float
    """Evaluations, and the rest outside of steps."""


def cells_of(folder: Path, variants: Sequence[Variant], seeds: int) -> list[Cell]:
    """Return all cells, seed by seed, so that every variant has a result early."""
    return [
        Cell(variant=variant, seed=seed, folder=folder / "cells" / f"{folder_name(variant.name)}-{seed}")
        for seed in range(seeds)
        for variant in variants
    ]


def steps_within(paces: Sequence[Pace], *, minutes: float, seeds: int, measured: float) -> int:
    """Return the steps of each run that fill the minutes, or refuse too few and report how many are needed."""
    fixed = measured + seeds * sum(pace.fixed for pace in paces)
    step = seeds * sum(pace.step for pace in paces)
    steps = int((60 * minutes - fixed) / step)
    if steps < FEWEST_STEPS:
        need = (fixed + FEWEST_STEPS * step) / 60
        raise ConfigError(
            f"`minutes` is {minutes:g}, but {len(paces) * seeds} runs of at least {FEWEST_STEPS} steps take about "
            f"{need:.1f} minutes; give that many, or fewer `seeds`."
        )
    return steps


def enter(folder: Path) -> StudyPlan | None:
    """Return the plan of a folder, None for a new one; a folder of something else is refused."""
    path = folder / PLAN
    if path.is_file():
        return from_dict(StudyPlan, read_json(path), where=f"the settings in {path}")
    if folder.exists() and (not folder.is_dir() or any(entry.name != "plan" for entry in folder.iterdir())):
        raise InputError(f"{folder} exists and is not a study; give another `out`.")
    return None


def check_same(ours: dict[str, Any], stored: StudyPlan, folder: Path, *, same_data: bool) -> None:
    """Refuse the folder of another study, or of the same one with other settings or images.

    With `same_data`, the files of the images may have other times.
    """
    files = ours.pop("files")
    theirs = {name: value for name, value in to_dict(stored).items() if name in ours}
    if apart := setting_differences(ours, theirs):
        raise InputError(
            f"{folder} holds another study, so it cannot be resumed: {'; '.join(apart)}. "
            "Give the settings that it has, or another `out`."
        )
    if not same_data and tuple(files) != stored.files:
        raise InputError(
            f"the data has the images that the study in {folder} was begun with by name, but files of other sizes or "
            "times, or other pixels; bring back the images, or if they were only copied or touched, resume with "
            "`same_data`."
        )


def write_plan(folder: Path, plan: StudyPlan) -> None:
    """Write the plan, whole or not at all."""
    write_json(folder / PLAN, to_dict(plan))
