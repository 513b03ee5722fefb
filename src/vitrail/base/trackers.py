"""Adapters that send measurements to tensorboard, wandb or mlflow; each package is imported only when it is used."""

from pathlib import Path
from typing import Any, Literal

from vitrail.base.extras import require
from vitrail.base.journal import Tracker

TrackerName = Literal["tensorboard", "wandb", "mlflow"]


class TensorBoard:
    """Event files in the run folder; `tensorboard --logdir RUN` shows them."""

    def __init__(self, folder: Path, settings: dict[str, Any]) -> None:
        require("tensorboard", extra="tensorboard", purpose="`track` tensorboard")
        from torch.utils.tensorboard import SummaryWriter

        self.writer = SummaryWriter(str(folder / "tensorboard"))
        self.writer.add_text("settings", str(settings))

    def log(self, step: int, values: dict[str, float]) -> None:
        """Write each value as a scalar."""
        for name, value in values.items():
            self.writer.add_scalar(name, value, step)

    def close(self) -> None:
        """Flush."""
        self.writer.close()


class WandB:
    """A run of Weights & Biases; WANDB_MODE=offline keeps it on this machine."""

    def __init__(self, folder: Path, settings: dict[str, Any]) -> None:
        wandb = require("wandb", extra="wandb", purpose="`track` wandb")
        self.run = wandb.init(project="vitrail", name=folder.name, dir=str(folder), config=settings)

    def log(self, step: int, values: dict[str, float]) -> None:
        """Send the values of a step."""
        self.run.log(values, step=step)

    def close(self) -> None:
        """Finish the run."""
        self.run.finish()


class MLflow:
    """A run of MLflow; MLFLOW_TRACKING_URI is its address."""

    def __init__(self, folder: Path, settings: dict[str, Any]) -> None:
        self.mlflow = require("mlflow", extra="mlflow", purpose="`track` mlflow")
        self.mlflow.start_run(run_name=folder.name)
        self.mlflow.log_dict(settings, "config.json")

    def log(self, step: int, values: dict[str, float]) -> None:
        """Send the values of a step."""
        self.mlflow.log_metrics(values, step=step)

    def close(self) -> None:
        """Finish the run."""
        self.mlflow.end_run()


_TRACKERS: dict[str, type[TensorBoard] | type[WandB] | type[MLflow]] = {
    "tensorboard": TensorBoard,
    "wandb": WandB,
    "mlflow": MLflow,
}


def make_trackers(names: tuple[TrackerName, ...], folder: Path, settings: dict[str, Any]) -> tuple[Tracker, ...]:
    """Open the trackers of these names."""
    return tuple(_TRACKERS[name](folder, settings) for name in names)
