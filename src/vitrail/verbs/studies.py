"""List the studies."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, overload

from vitrail.base.table import Table, Tabular
from vitrail.model.cost import cost
from vitrail.runs.choose import choose
from vitrail.runs.draft import Facts
from vitrail.runs.plan import FLOPS_PER_MAC
from vitrail.studies.catalogue import STUDIES
from vitrail.studies.study import Study

_USUAL = Facts(images=6000, classes=10, channels=3, side=32)
"""Data for which runs and their compute are counted."""
_STEPS = 1000


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
            {
                "name": one.name,
                "question": one.question,
                "runs": runs_of(one),
                "teraflops": teraflops_of(one),
                "paper": one.paper,
                "source": one.source,
            }
            for one in self.studies
        ]

    def tables(self) -> list[Table]:
        """Return one table, and the paper's answers below it."""
        rows = tuple((one.name, one.question, str(runs_of(one)), f"{teraflops_of(one):.2g}") for one in self.studies)
        cost_note = (
            f"Cost of one seed: runs, and teraFLOPs for {_STEPS:,} steps on images of {_USUAL.side} x {_USUAL.side} "
            "pixels; speed passes one image through each model."
        )
        notes = (
            cost_note,
            *(f"{one.name}: {one.paper} {f'({one.source})' if one.source else ''}".strip() for one in self.studies),
        )
        return [Table(title="Studies", columns=("study", "", "runs", "teraFLOPs"), rows=rows, notes=notes)]


def runs_of(study: Study) -> int:
    """Count the runs of a study for each seed, with two data sets where it takes several."""
    return sum(len(study.shares(variant)) for variant in study.variants(_USUAL, ["one", "other"]))


def teraflops_of(study: Study) -> float:
    """Return the compute of a study for each seed: of its steps, or of one pass of each model that is only timed."""
    usual, total = choose(_USUAL), 0.0
    for variant in study.variants(_USUAL, ["one", "other"]):
        macs = cost(variant.model or usual.model).macs
        images = usual.batch * _STEPS * sum(study.shares(variant))
        total += 2 * macs if study.task == "speed" else FLOPS_PER_MAC * macs * images
    return total / 1e12


def list_studies() -> StudyList:
    """List the studies: their question, what they cost for each seed, and what the paper found.

    >>> [study.name for study in vitrail.list_studies()][:3]
    ['positions', 'pooling', 'shape']
    """
    return StudyList(studies=tuple(STUDIES.values()))
