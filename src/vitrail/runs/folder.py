"""The folder of a run: config.json, metrics, checkpoints, the model, the report."""

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vitrail.base.errors import InputError, WriteError
from vitrail.base.files import atomic_write, hold
from vitrail.base.ranks import Ranks
from vitrail.base.reading import read_json
from vitrail.base.settings import to_dict
from vitrail.runs.config import RunConfig, differences, read_config
from vitrail.runs.result import Result, read_result
from vitrail.training.keeper import MARK

PLAN, SWEEP, SEEDS, TABLE = OF_FINETUNING = ("finetune.json", "sweep", "seeds", "series.json")
RUN_LOCK, SERIES_LOCK = LOCKS = (".run.lock", ".series.lock")
"""Locks of the process that trains, and of the one that carries out a series, of which training is a part."""


@dataclass(frozen=True, kw_only=True)
class RunFolder:
    """The folder of one run."""

    path: Path

    @property
    def config(self) -> Path:
        """Every setting, to run it again."""
        return self.path / "config.json"

    @property
    def plan(self) -> Path:
        """What fine-tuning does: a sweep and runs, of which this is the last."""
        return self.path / PLAN

    @property
    def table(self) -> Path:
        """The table of a series."""
        return self.path / TABLE

    def sweep(self, rate: float) -> "RunFolder":
        """Return the folder of a learning rate that fine-tuning tries."""
        return RunFolder(path=self.path / SWEEP / f"rate-{rate:g}")

    def seed(self, seed: int) -> "RunFolder":
        """Return the folder of a further run with another seed."""
        return RunFolder(path=self.path / SEEDS / f"seed-{seed}")

    @property
    def pace(self) -> Path:
        """How the number of steps of a run with minutes was corrected."""
        return self.path / "pace.jsonl"

    @property
    def checkpoints(self) -> Path:
        """States to resume from."""
        return self.path / "checkpoints"

    @property
    def model(self) -> Path:
        """The result; there once the run is complete."""
        return self.path / "model.safetensors"

    @property
    def best(self) -> Path:
        """The weights of the best evaluation, while early stopping watches."""
        return self.path / "best.safetensors"

    @property
    def result(self) -> Path:
        """The final figures."""
        return self.path / "result.json"

    @property
    def diverged(self) -> Path:
        """The step at which the loss was not finite any more, in a series."""
        return self.path / "diverged.json"

    @property
    def report(self) -> Path:
        """What happened, as a page."""
        return self.path / "report.html"

    @property
    def finished(self) -> bool:
        """Whether the run is complete."""
        return self.result.is_file() and self.model.is_file()

    @property
    def begun(self) -> bool:
        """Whether there is something to lose: a checkpoint or a result of this run, or of one that belongs to it."""
        return self.result.is_file() or any(self.path.rglob(MARK)) or any(self.path.rglob("checkpoints/step-*"))

    def read_config(self) -> RunConfig:
        """Read the settings of the run that is here."""
        if not self.config.is_file():
            raise InputError(f"{self.path} is not a run that can be resumed: it has no {self.config.name}.")
        return read_config(read_json(self.config), f"the settings in {self.config}")

    def read_result(self) -> Result:
        """Read the final figures."""
        return read_result(self.result)

    def set_aside(self, lock: str = RUN_LOCK) -> str | None:
        """Give the folder of a run another name, so that its own is free; return the note about it, if it was there."""
        if not self.path.is_dir() or not any(self.path.iterdir()):
            return None
        number = 1
        while (other := self.path.with_name(f"{self.path.name}-before-{number}")).exists():
            number += 1
        with self.claim(lock):
            try:
                self.path.rename(other)
            except OSError as error:
                raise WriteError(f"{self.path} could not be renamed: {error.strerror or error}.") from error
            (other / lock).unlink(missing_ok=True)
        return f"{self.path} existed; it is now {other}."

    def enter(self, config: RunConfig) -> None:
        """Begin a run in a claimed folder, or resume the same run; another one is refused."""
        if self.config.is_file():
            changes = differences(config, self.read_config())
            if changes and self.begun:
                raise InputError(
                    f"{self.path} holds a run with other settings, so it cannot be resumed: {'; '.join(changes)}. "
                    "Give the settings that it has, or another `out`."
                )
        write_json(self.config, to_dict(config))

    @contextmanager
    def claim(self, lock: str = RUN_LOCK) -> Iterator[None]:
        """Make the folder and keep other processes out of it while the block lasts; remove what a kill left half done.

        A folder with other files is refused.
        """
        if self.path.exists() and not self.config.is_file() and self._is_other():
            raise InputError(f"{self.path} exists and is not a run; give another `out`.")
        with claim_folder(self.path, lock):
            yield

    def _is_other(self) -> bool:
        return not self.path.is_dir() or any(map(self._is_strange, self.path.iterdir()))

    def _is_strange(self, entry: Path) -> bool:
        """Return whether a file is not a run's; fine-tuning has its plan and other runs in the folder of the last."""
        if entry.name in LOCKS or (entry.name.startswith(".") and entry.name.endswith(".part")):
            return False
        return entry.name not in OF_FINETUNING or not self.plan.is_file()


@contextmanager
def claim_folder(path: Path, lock: str) -> Iterator[None]:
    """Make a folder and keep other processes out of it while the block lasts; remove what a kill left half done."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise WriteError(f"{path} could not be created: {error.strerror or error}.") from error
    with hold(path / lock):
        for part in path.glob(".*.part"):
            part.unlink(missing_ok=True)
        yield


@contextmanager
def claimed(
    claim: AbstractContextManager[None], ranks: Ranks, enter: Callable[[], None] | None = None
) -> Iterator[None]:
    """Let the first rank claim a folder and enter it while all of them work; its refusal ends them all."""
    with ExitStack() as stack:

        def begin() -> int:
            stack.enter_context(claim)
            if enter is not None:
                enter()
            return 0

        ranks.follow(begin)
        yield


def write_json(path: Path, value: Any) -> None:
    """Write a JSON file, whole or not at all."""
    with atomic_write(path) as file:
        file.write((json.dumps(value, indent=2, allow_nan=False) + "\n").encode())
