"""The plan of fine-tuning: a run, the learning rates to try, and how many seeds; `finetune.json` in its folder."""

from dataclasses import dataclass, replace

from vitrail.base.errors import ConfigError, InputError
from vitrail.base.numbers import check_whole
from vitrail.base.reading import read_json
from vitrail.base.settings import from_dict, setting_differences, to_dict
from vitrail.runs.config import RunConfig, identity
from vitrail.runs.data import RunData
from vitrail.runs.folder import RunFolder, write_json
from vitrail.training.schedules import LARGEST_RATE, SMALLEST_RATE

MOST_RUNS = 1000
"""Final runs; their spread is known long before."""


@dataclass(frozen=True, kw_only=True)
class FinetunePlan:
    """What fine-tuning does: `finetune.json` is this."""

    base: RunConfig
    """The run on all training images with the first seed; its rate is used where there is only one."""
    rates: tuple[float, ...]
    """Learning rates to choose from."""
    runs: int = 1
    """Final runs, each with another seed."""

    def __post_init__(self) -> None:
        """Refuse plans that cannot be carried out."""
        bounded = all(SMALLEST_RATE <= rate <= LARGEST_RATE for rate in self.rates)
        if not self.rates or len(set(self.rates)) != len(self.rates) or not bounded:
            raise ConfigError(
                f"the learning rates are {list(self.rates)}; give at least one, all different and from "
                f"{SMALLEST_RATE} to {LARGEST_RATE}."
            )
        check_whole("runs", self.runs, most=MOST_RUNS)

    @property
    def trainings(self) -> int:
        """Count the runs, tried rates included."""
        return (len(self.rates) if len(self.rates) > 1 else 0) + self.runs

    def tried(self, rate: float, data: RunData) -> RunConfig:
        """Return the run that tries a rate."""
        config = _at_rate(self.base, rate)
        return replace(config, data=replace(config.data, role="dev"), facts=data.facts)

    def final(self, rate: float, number: int) -> RunConfig:
        """Return one of the final runs."""
        return replace(_at_rate(self.base, rate), seed=self.base.seed + number)


def enter_plan(folder: RunFolder, plan: FinetunePlan) -> None:
    """Write the plan into its folder; another plan there is overwritten before it has results, and refused after."""
    stored = read_plan(folder) if folder.plan.is_file() and folder.begun else None
    if stored is not None and (apart := plan_differences(plan, stored)):
        raise InputError(
            f"{folder.path} holds fine-tuning with other settings, so it cannot be resumed: {'; '.join(apart)}. "
            "Give the settings that it has, or another `out`."
        )
    if plan != stored:
        write_json(folder.plan, to_dict(plan))


def read_plan(folder: RunFolder) -> FinetunePlan:
    """Read the plan of a folder."""
    if not folder.plan.is_file():
        raise InputError(f"{folder.path} is not fine-tuning that can be resumed: it has no {folder.plan.name}.")
    return from_dict(FinetunePlan, read_json(folder.plan), where=f"the settings in {folder.plan}")


def plan_differences(ours: FinetunePlan, theirs: FinetunePlan) -> list[str]:
    """Return the settings in which two plans differ, as sentences; how the work is done may differ."""
    one, other = ({**identity(plan.base), "rates": list(plan.rates), "runs": plan.runs} for plan in (ours, theirs))
    return setting_differences(one, other)


def _at_rate(config: RunConfig, rate: float) -> RunConfig:
    return replace(config, schedule=replace(config.schedule, peak=rate))
