"""The folder of a run: config.json, metrics, checkpoints, the model, the report."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vitrail.base.errors import InputError, WriteError
from vitrail.base.files import atomic_write
from vitrail.base.settings import to_dict
from vitrail.runs.config import RunConfig, differences, read_config

PLAN, SWEEP, SEEDS = OF_FINETUNING = ("finetune.json", "sweep", "seeds")


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

    def read_config(self) -> RunConfig:
        """Read the settings of the run that is here."""
        try:
            return read_config(json.loads(self.config.read_text()), f"the settings in {self.config}")
        except (OSError, ValueError) as error:
            raise InputError(f"{self.path} is no run that can be gone on with: {error}.") from None

    def read_result(self) -> dict[str, Any]:
        """Read the final figures."""
        return dict(json.loads(self.result.read_text()))

    def enter(self, config: RunConfig) -> bool:
        """Make the folder for a run, or go on with the same run; tell whether there was one.

        A folder that holds another run, or something else, is refused.
        """
        if self.config.is_file():
            found = differences(config, self.read_config())
            if found:
                raise InputError(
                    f"{self.path} holds a run with other settings, so it cannot be gone on with: {'; '.join(found)}. "
                    "Give another --out, or --resume alone to go on with its own settings."
                )
            self._write_config(config)
            return True
        self.claim()
        self._write_config(config)
        return False

    def claim(self) -> None:
        """Make the folder; one that holds something else is refused."""
        if self.path.exists() and (not self.path.is_dir() or any(map(self._is_strange, self.path.iterdir()))):
            raise InputError(f"{self.path} exists and is no run; give another --out.")
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise WriteError(f"{self.path} could not be made: {error.strerror or error}.") from error

    def _is_strange(self, entry: Path) -> bool:
        """Tell what belongs to no run; fine-tuning puts its plan and other runs into the folder of the last."""
        return entry.name not in OF_FINETUNING or not self.plan.is_file()

    def _write_config(self, config: RunConfig) -> None:
        write_json(self.config, to_dict(config))


def write_json(path: Path, value: Any) -> None:
    """Write a JSON file, whole or not at all."""
    with atomic_write(path) as file:
        file.write((json.dumps(value, indent=2) + "\n").encode())
