"""The folder of a run: config.json, metrics, checkpoints, the model, the report."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vitrail.base.errors import InputError, WriteError
from vitrail.base.files import atomic_write, held
from vitrail.base.settings import to_dict
from vitrail.runs.config import RunConfig, differences, read_config

PLAN, SWEEP, SEEDS = OF_FINETUNING = ("finetune.json", "sweep", "seeds")
RUN_LOCK, PLAN_LOCK = LOCKS = (".run.lock", ".finetune.lock")
"""What the process that trains holds, and the one that carries out a plan, of which training is a part."""


@dataclass(frozen=True, kw_only=True)
class RunFolder:
    """Where everything about one run lies."""

    path: Path

    @property
    def config(self) -> Path:
        """Every setting, to run it again."""
        return self.path / "config.json"

    @property
    def plan(self) -> Path:
        """What fine-tuning does: a sweep and runs, of which this is the last."""
        return self.path / PLAN

    def sweep(self, rate: float) -> "RunFolder":
        """Return the folder of a learning rate that fine-tuning tries."""
        return RunFolder(path=self.path / SWEEP / f"rate-{rate:g}")

    def seed(self, seed: int) -> "RunFolder":
        """Return the folder of a further run with another seed."""
        return RunFolder(path=self.path / SEEDS / f"seed-{seed}")

    @property
    def checkpoints(self) -> Path:
        """States to go on from."""
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
        return self.result.is_file() or any(self.path.rglob("checkpoints/step-*"))

    def read_config(self) -> RunConfig:
        """Read the settings of the run that is here."""
        try:
            return read_config(json.loads(self.config.read_text()), f"the settings in {self.config}")
        except (OSError, ValueError) as error:
            raise InputError(f"{self.path} is no run that can be gone on with: {error}.") from None

    def read_result(self) -> dict[str, Any]:
        """Read the final figures."""
        return dict(json.loads(self.result.read_text()))

    def enter(self, config: RunConfig) -> None:
        """Begin a run in a folder that is held, or go on with the same run; another one is refused."""
        if self.config.is_file():
            found = differences(config, self.read_config())
            if found and self.begun:
                raise InputError(
                    f"{self.path} holds a run with other settings, so it cannot be gone on with: {'; '.join(found)}. "
                    "Give another --out, or --resume alone to go on with its own settings."
                )
        write_json(self.config, to_dict(config))

    @contextmanager
    def claim(self, lock: str = RUN_LOCK) -> Iterator[None]:
        """Make the folder and keep other processes out of it while the block lasts; remove what a kill left half done.

        One that holds something else is refused.
        """
        if self.path.exists() and not self.config.is_file() and self._is_other():
            raise InputError(f"{self.path} exists and is no run; give another --out.")
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise WriteError(f"{self.path} could not be made: {error.strerror or error}.") from error
        with held(self.path / lock):
            for part in self.path.glob(".*.part"):
                part.unlink(missing_ok=True)
            yield

    def _is_other(self) -> bool:
        return not self.path.is_dir() or any(map(self._is_strange, self.path.iterdir()))

    def _is_strange(self, entry: Path) -> bool:
        """Tell what belongs to no run; fine-tuning puts its plan and other runs into the folder of the last."""
        if entry.name in LOCKS or (entry.name.startswith(".") and entry.name.endswith(".part")):
            return False
        return entry.name not in OF_FINETUNING or not self.plan.is_file()


def write_json(path: Path, value: Any) -> None:
    """Write a JSON file, whole or not at all."""
    with atomic_write(path) as file:
        file.write((json.dumps(value, indent=2) + "\n").encode())
