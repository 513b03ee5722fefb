"""The paper's way of fine-tuning (App. B.1.1): choose the learning rate on a dev split, then train on everything.

    rates x (training images without dev -> dev accuracy) -> the best rate -> seeds x (all training images -> test)

Everything lies in one run folder: the tried rates in sweep/, further seeds in seeds/, and the run of the first seed,
whose model is handed on, in the folder itself. Each is a run of its own, so that stopping anywhere loses nothing.
"""

import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from vitrail.base.errors import ConfigError, InputError
from vitrail.base.ranks import Ranks
from vitrail.base.settings import from_dict, to_dict
from vitrail.report.sweep import seeds_section, sweep_section
from vitrail.runs.conduct import Watching, claimed, conduct
from vitrail.runs.config import RunConfig, identity, told_apart
from vitrail.runs.data import RunData, open_run_data
from vitrail.runs.folder import PLAN_LOCK, RunFolder, write_json
from vitrail.runs.train import Run
from vitrail.train.loop import DivergedError
from vitrail.train.signals import StopSignal


@dataclass(frozen=True, kw_only=True)
class FinetunePlan:
    """What fine-tuning does: `finetune.json` is this."""

    base: RunConfig
    """The run on all training images with the first seed; its rate is used when one alone is given."""
    rates: tuple[float, ...]
    """Learning rates to choose from."""
    runs: int = 1
    """Final runs, each with another seed."""

    def __post_init__(self) -> None:
        """Refuse what is no plan."""
        if not self.rates or len(set(self.rates)) != len(self.rates) or not all(rate > 0 for rate in self.rates):
            raise ConfigError(
                f"the learning rates are {list(self.rates)}; give at least one, above 0 and all different."
            )
        if self.runs < 1:
            raise ConfigError(f"{self.runs} runs are none; give 1 or more.")

    @property
    def trainings(self) -> int:
        """Count the runs, tried rates included."""
        return (len(self.rates) if len(self.rates) > 1 else 0) + self.runs

    def tried(self, rate: float, data: RunData) -> RunConfig:
        """Return the run that tries a rate."""
        config = _at_rate(self.base, rate)
        return replace(config, data=replace(config.data, role="dev"), facts=data.facts, evaluate_every=config.steps)

    def final(self, rate: float, number: int) -> RunConfig:
        """Return one of the final runs."""
        return replace(_at_rate(self.base, rate), seed=self.base.seed + number)


@dataclass(frozen=True, kw_only=True)
class Finetuning:
    """A plan that is being carried out."""

    plan: FinetunePlan
    data: RunData
    """Everything but the test images, and the test images."""
    folder: RunFolder
    ranks: Ranks
    watch: Callable[[RunConfig, str], AbstractContextManager[Watching]]
    """Shows one of the runs, which a few words describe."""
    stop: StopSignal

    def carry_out(self) -> dict[str, Any]:
        """Do whatever has not been done yet, and return the figures."""
        with claimed(self.folder, self.ranks, PLAN_LOCK, partial(_check_same, self.folder, self.plan)):
            sweep = self.sweep()
            rate = best_rate(sweep) if sweep else self.plan.rates[0]
            others = [
                {"seed": self.plan.base.seed + number} | self.final(rate, number, [], [])
                for number in range(1, self.plan.runs)
            ]
            return self.final(rate, 0, sweep, others)

    def sweep(self) -> list[dict[str, Any]]:
        """Try every rate on the dev split; a single rate needs no trial, and one that diverges is out."""
        rates = self.plan.rates
        if len(rates) == 1:
            return []
        data = open_run_data(replace(self.plan.base.data, role="dev"), seed=self.plan.base.seed)
        rows, diverged = [], None
        for number, rate in enumerate(rates):
            run = Run(config=self.plan.tried(rate, data), data=data, folder=self.folder.sweep(rate), ranks=self.ranks)
            run.check()
            try:
                result = self._train(run, f"rate {number + 1} of {len(rates)}: {rate:g}")
            except DivergedError as error:
                diverged = error
                continue
            rows.append({"rate": rate} | {name: result[name] for name in ("accuracy", "loss", "images")})
        if diverged is not None and not rows:
            raise diverged
        return rows

    def final(
        self, rate: float, number: int, sweep: list[dict[str, Any]], others: list[dict[str, Any]]
    ) -> dict[str, Any]:
        """Train on all training images; the first seed comes last, and tells of everything before it."""
        config = self.plan.final(rate, number)
        extras: list[tuple[str, str]] = [("Learning rate", sweep_section(sweep, rate))] if sweep else []
        extras += [("Other seeds", seeds_section(others))] if others else []
        run = Run(
            config=config,
            data=self.data,
            folder=self.folder.seed(config.seed) if number else self.folder,
            ranks=self.ranks,
            extras=tuple(extras),
        )
        seeds = f"seed {config.seed}" if self.plan.runs > 1 else "all training images"
        result = self._train(run, f"{seeds} at rate {rate:g}")
        if number:
            return result
        diverged = sorted(set(self.plan.rates) - {row["rate"] for row in sweep}) if sweep else []
        told = {"rate": rate, "sweep": sweep, "diverged": diverged} | spread([result, *others])
        if self.ranks.first and told.keys() - result.keys():
            write_json(self.folder.result, result | told)
        self.ranks.wait()
        return result | told

    def _train(self, run: Run, words: str) -> dict[str, Any]:
        with self.watch(run.config, words) as watching:
            return conduct(run, watching, self.stop)


def best_rate(sweep: list[dict[str, Any]]) -> float:
    """Return the rate with the highest dev accuracy; of equal ones that with the lowest loss."""
    return float(max(sweep, key=lambda row: (row["accuracy"], -row["loss"]))["rate"])


def spread(results: list[dict[str, Any]]) -> dict[str, Any]:
    """Return mean and standard deviation of the accuracy over the runs."""
    found = [result["accuracy"] for result in results if "accuracy" in result]
    if len(results) < 2 or not found:
        return {}
    return {"accuracies": found, "accuracy_mean": float(np.mean(found)), "accuracy_std": float(np.std(found, ddof=1))}


def enter(folder: RunFolder, plan: FinetunePlan) -> None:
    """Write the plan into its folder, or go on with the same plan; one that has nothing to show is overwritten."""
    if folder.plan.is_file() and folder.begun:
        _check_same(folder, plan)
        return
    with folder.claim(PLAN_LOCK):
        write_json(folder.plan, to_dict(plan))


def _check_same(folder: RunFolder, plan: FinetunePlan) -> None:
    """Refuse a folder with another plan."""
    found = plan_differences(plan, read_plan(folder))
    if found:
        raise InputError(
            f"{folder.path} holds fine-tuning with other settings, so it cannot be gone on with: "
            f"{'; '.join(found)}. Give another --out, or --resume alone to go on with its own settings."
        )


def read_plan(folder: RunFolder) -> FinetunePlan:
    """Read the plan of a folder."""
    try:
        return from_dict(FinetunePlan, json.loads(folder.plan.read_text()), where=f"the settings in {folder.plan}")
    except (OSError, ValueError) as error:
        raise InputError(f"{folder.path} is no fine-tuning that can be gone on with: {error}.") from None


def plan_differences(ours: FinetunePlan, theirs: FinetunePlan) -> list[str]:
    """Tell, setting by setting, in what two plans differ; how the work is done may differ."""
    one, other = ({**identity(plan.base), "rates": list(plan.rates), "runs": plan.runs} for plan in (ours, theirs))
    return told_apart(one, other)


def _at_rate(config: RunConfig, rate: float) -> RunConfig:
    return replace(config, schedule=replace(config.schedule, peak=rate))
