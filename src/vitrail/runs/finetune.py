"""The paper's way of fine-tuning (App. B.1.1): choose the learning rate on a dev split, then train on everything.

    rates x (training images without dev -> dev accuracy) -> the best rate -> seeds x (all training images -> test)

Everything is in one run folder: the tried rates in sweep/, further seeds in seeds/, and the run of the first seed,
whose model is saved, in the folder itself. They are a series: stopping anywhere loses nothing, and `series.json` has
the figures of all of them.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from vitrail.base.ranks import Ranks
from vitrail.base.settings import to_dict
from vitrail.report.section import Section
from vitrail.report.sweep import SeedScore, TriedRate, seeds_section, sweep_section
from vitrail.runs.config import RunConfig
from vitrail.runs.data import RunData, open_run_data
from vitrail.runs.finetune_plan import FinetunePlan, enter_plan
from vitrail.runs.folder import SERIES_LOCK, RunFolder, claimed
from vitrail.runs.result import Result
from vitrail.runs.series import Cell, Series, Table, Watch
from vitrail.runs.speed import pace
from vitrail.runs.train import Run
from vitrail.training.endings import DivergedError
from vitrail.training.signals import StopSignal

TRIAL_SECONDS = 2.0
"""How long the speed is measured for an estimate."""


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """How long a plan will take, in seconds."""

    seconds: float
    step: float
    """One update."""


@dataclass(frozen=True, kw_only=True)
class Finetuned:
    """The results of a plan."""

    result: Result
    """The figures of the run whose model is saved: all training images, the first seed."""
    rate: float
    """The learning rate that was chosen."""
    sweep: Table
    """The rates that were tried; empty with one rate alone."""
    seeds: Table
    """The final runs, the saved one first."""

    def as_dict(self) -> dict[str, Any]:
        """Return the figures for JSON, those of the saved model first."""
        diverged = sorted(float(row.varied["rate"]) for row in self.sweep.diverged)
        sweep = [to_dict(tried) for tried in tried_rates(self.sweep)]
        chosen = {"rate": self.rate, "sweep": sweep, "diverged": diverged}
        return {**self.result.as_dict(), **chosen, **({} if self.spread is None else to_dict(self.spread))}

    @property
    def spread(self) -> "Spread | None":
        """The accuracy over the seeds; None where there is one."""
        return spread([row.accuracy for row in self.seeds.finished])


@dataclass(frozen=True, kw_only=True)
class Spread:
    """The accuracy of several runs that differ in their seed."""

    accuracies: tuple[float, ...]
    accuracy_mean: float
    accuracy_std: float
    """The standard deviation, with one degree of freedom for the mean."""


@dataclass(frozen=True, kw_only=True)
class Finetuning:
    """A plan that is ready to be carried out."""

    plan: FinetunePlan
    data: RunData
    """Everything but the test images, and the test images."""
    folder: RunFolder
    ranks: Ranks

    def run(self, config: RunConfig | None = None, data: RunData | None = None) -> Run:
        """Return a run in the folder of the plan, by default the one whose model is saved."""
        return Run(config=config or self.plan.base, data=data or self.data, folder=self.folder, ranks=self.ranks)

    def check(self) -> None:
        """Refuse a plan that cannot be trained, before anything is built."""
        self.run().check()
        for cell in self.sweep()[:1]:
            cell.run.check()

    def enter(self) -> bool:
        """Write the plan into its folder, or refuse a folder with another; return whether it is new there.

        Every rank calls it. `carry_out` does the same; this refuses a folder before anything is measured.
        """
        fresh = bool(self.ranks.agree(int(not self.folder.plan.is_file())))
        with self._claimed():
            return fresh

    def estimate(self) -> Estimate:
        """Measure how long everything will take, by a few steps that are thrown away."""
        measured, base = pace(self.run(), for_seconds=TRIAL_SECONDS), self.plan.base
        seconds = measured.total(base.steps, base.evaluate_every) * self.plan.trainings
        return Estimate(seconds=seconds, step=measured.step)

    def carry_out(self, watch: Watch, stop: StopSignal) -> Finetuned:
        """Do whatever has not been done yet; every rank calls it."""
        series = Series(path=self.folder.path, ranks=self.ranks, watch=watch, stop=stop)
        with self._claimed():
            sweep = series.carry_out(self.sweep())
            rate = best_rate(sweep) if sweep.rows else self.plan.rates[0]
            others = series.carry_out(self.seeds(rate), after=sweep)
            final = series.carry_out([self.final(rate, sweep, others)], after=sweep + others)
            for row in final.diverged:
                raise DivergedError(str(row.diverged), step=row.steps)
            return Finetuned(result=self.folder.read_result(), rate=rate, sweep=sweep, seeds=final + others)

    def sweep(self) -> list[Cell]:
        """Return the runs that try a rate on the dev split; a single rate needs no trial."""
        if len(self.plan.rates) == 1:
            return []
        data = open_run_data(replace(self.plan.base.data, role="dev"), seed=self.plan.base.seed)
        return [
            Cell(
                name=f"rate {rate:g}",
                run=replace(self.run(self.plan.tried(rate, data), data), folder=self.folder.sweep(rate)),
                varied={"rate": rate},
            )
            for rate in self.plan.rates
        ]

    def seeds(self, rate: float) -> list[Cell]:
        """Return the runs with further seeds on all training images."""
        return [self._seed(rate, number, ()) for number in range(1, self.plan.runs)]

    def final(self, rate: float, sweep: Table, others: Table) -> Cell:
        """Return the run whose model is saved; its report shows everything before it."""
        sections = [sweep_section(tried_rates(sweep), rate)] if sweep.rows else []
        if others.rows:
            rows = [(int(row.varied["seed"]), row.accuracy) for row in others.finished]
            scores = [SeedScore(seed=seed, accuracy=accuracy) for seed, accuracy in rows if accuracy is not None]
            sections.append(seeds_section(scores))
        return self._seed(rate, 0, tuple(sections))

    def _claimed(self) -> AbstractContextManager[None]:
        return claimed(self.folder.claim(SERIES_LOCK), self.ranks, partial(enter_plan, self.folder, self.plan))

    def _seed(self, rate: float, number: int, sections: tuple[Section, ...]) -> Cell:
        config = self.plan.final(rate, number)
        folder = self.folder.seed(config.seed) if number else self.folder
        run = replace(self.run(config), folder=folder, sections=sections)
        return Cell(name=f"seed {config.seed} at rate {rate:g}", run=run, varied={"rate": rate, "seed": config.seed})


def tried_rates(sweep: Table) -> list[TriedRate]:
    """Return the figures of the rates that did not diverge."""
    return [
        TriedRate(rate=float(row.varied["rate"]), accuracy=row.accuracy, loss=row.loss, images=row.images)
        for row in sweep.finished
        if row.accuracy is not None and row.loss is not None and row.images is not None
    ]


def best_rate(sweep: Table) -> float:
    """Return the rate with the highest dev accuracy; of equal ones that with the lowest loss."""
    if not sweep.finished:
        last = sweep.rows[-1]
        raise DivergedError(f"every learning rate diverged; with {last.cell}, {last.diverged}", step=last.steps)
    best = max(sweep.finished, key=lambda row: (row.accuracy or 0.0, -(row.loss or 0.0)))
    return float(best.varied["rate"])


def spread(accuracies: Sequence[float | None]) -> Spread | None:
    """Return mean and standard deviation of the accuracy over several runs; None for one."""
    measured = [accuracy for accuracy in accuracies if accuracy is not None]
    if len(measured) < 2:
        return None
    return Spread(
        accuracies=tuple(measured),
        accuracy_mean=float(np.mean(measured)),
        accuracy_std=float(np.std(measured, ddof=1)),
    )
