"""List the studies."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, overload

from vitrail.base.table import Table, Tabular
from vitrail.runs.draft import Facts
from vitrail.studies.catalogue import STUDIES
from vitrail.studies.study import Study

_USUAL = Facts(images=6000, classes=10, channels=3, side=32)
"""Data for which variants are counted."""


@dataclass(frozen=True, kw_only=True, repr=False)
class StudyList(Tabular, Sequence[Study]):
    """The studies, in the paper's order."""

    studies: tuple[Study, ...]

    def __len__(self) -> int:
        """Count the studies."""
        return len(self.studies)

    def __iter__(self) -> Iterator[Study]:
        """Walk over the studies."""
        return iter(self.studies)

    @overload
    def __getitem__(self, at: int) -> Study: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Study]: ...
    def __getitem__(self, at: int | slice) -> Study | Sequence[Study]:
        """Return a study by its place."""
        return self.studies[at]

    def to_dict(self) -> list[dict[str, Any]]:
        """Return names, questions, costs and answers for JSON."""
        return [
            {"name": one.name, "question": one.question, "runs": runs_of(one), "paper": one.paper, "source": one.source}
            for one in self.studies
        ]

    def tables(self) -> list[Table]:
        """Return one table, and the paper's answers below it."""
        rows = tuple((one.name, one.question, str(runs_of(one))) for one in self.studies)
        notes = tuple(
            f"{one.name}: {one.paper} {f'({one.source})' if one.source else ''}".strip() for one in self.studies
        )
        return [Table(title="Studies", columns=("study", "", "runs a seed"), rows=rows, notes=notes)]


def runs_of(study: Study) -> int:
    """Count the runs of a study for each seed, with two data sets where it takes several."""
    chain = 1 if study.task in ("train", "speed") else 2
    return chain * len(study.variants(_USUAL, ["one", "other"]))


def list_studies() -> StudyList:
    """List the studies: their question, how many runs they take for each seed, and what the paper found.

    >>> [study.name for study in vitrail.list_studies()][:3]
    ['positions', 'pooling', 'shape']
    """
    return StudyList(studies=tuple(STUDIES.values()))
