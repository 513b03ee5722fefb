"""Single settings of a run that are requested: typed keywords, and any other setting by its path."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from vitrail.base.numbers import check_whole
from vitrail.base.settings import from_dict, to_dict
from vitrail.base.trackers import TrackerName
from vitrail.model.patches import Size
from vitrail.runs.config import RunConfig, read_config, with_settings
from vitrail.runs.data import absolute, absolute_data
from vitrail.runs.data_config import DataConfig, DataFacts
from vitrail.runs.draft import Draft
from vitrail.runs.execution import Device, Execution
from vitrail.training.learner import ObjectiveConfig
from vitrail.training.optimizers import OptimizerName
from vitrail.training.schedules import Shape
from vitrail.training.step import Precision

Setting = bool | int | float | str | Sequence[str] | None
"""A value of a keyword, as config.json has it."""

# Keyword -> the setting of `RunConfig` that it sets, by path; a test checks that both have the same type.
PATHS = {
    "batch": "batch",
    "seed": "seed",
    "val_fraction": "data.val_fraction",
    "fraction": "data.fraction",
    "skip_broken": "data.skip_broken",
    "root": "data.root",
    "balanced": "data.balanced",
    "optimizer": "optimizer.name",
    "learning_rate": "schedule.peak",
    "schedule": "schedule.shape",
    "warmup": "schedule.warmup_steps",
    "weight_decay": "optimizer.weight_decay",
    "layer_decay": "optimizer.layer_decay",
    "freeze": "optimizer.frozen",
    "dropout": "model.dropout",
    "mixer": "model.mixer.kind",
    "label_smoothing": "objective.label_smoothing",
    "class_weights": "objective.class_weights",
    "probe": "objective.probe",
    "mixup": "augmentation.mixup",
    "cutmix": "augmentation.cutmix",
    "averaging": "averaging",
    "drop_patches": "objective.drop_patches",
    "patience": "patience",
    "precision": "precision",
    "evaluate_every": "evaluate_every",
    "checkpoint_every": "execution.checkpoint_every",
}
# The same for how the work is done, which a stored run may change.
EXECUTION = {
    name: f"execution.{name}"
    for name in ("device", "threads", "workers", "recompute", "shard", "keep_checkpoints", "track", "micro_batch")
} | {"compile": "execution.compiled"}


@dataclass(frozen=True, kw_only=True)
class Outline(Draft):
    """A run whose settings are complete, but not yet checked together."""

    data: DataConfig
    facts: DataFacts
    evaluate_every: int
    log_every: int
    execution: Execution


@dataclass(frozen=True, kw_only=True)
class Changes:
    """Requested settings; None, False and an empty sequence leave one to the recipe, the rule or the stored run."""

    batch: int | None = None
    """Images in an update, over all ranks."""
    seed: int | None = None
    """Everything random follows from it."""
    optimizer: OptimizerName | None = None
    learning_rate: float | None = None
    """The highest learning rate."""
    schedule: Shape | None = None
    """How the learning rate falls."""
    warmup: int | None = None
    """Steps in which the learning rate rises."""
    weight_decay: float | None = None
    dropout: float | None = None
    averaging: float | None = None
    """Factor of Polyak averaging; 0 is off."""
    layer_decay: float | None = None
    freeze: Sequence[str] = ()
    """Parameters that stay as they are; * stands for anything."""
    precision: Precision | None = None
    val_fraction: float | None = None
    fraction: float | None = None
    skip_broken: str | None = None
    root: str | None = None
    evaluate_every: int | None = None
    checkpoint_every: int | None = None
    keep_checkpoints: int | None = None
    micro_batch: int | Literal["auto"] | None = None
    """Images that go through the model at once; auto finds the most that fit."""
    workers: int | None = None
    threads: int | None = None
    device: Device | None = None
    recompute: bool = False
    compile: bool = False
    shard: bool = False
    track: Sequence[TrackerName] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Any other setting of `RunConfig` by its path, such as augmentation.flip; it overrides the others."""

    def requests(self, name: str) -> bool:
        """Return whether a keyword is set; 0 is a value."""
        value = getattr(self, name)
        return value is not None and value is not False and value != () and value != []

    @property
    def deciding(self) -> tuple[str, ...]:
        """The paths of the requested settings that decide the result."""
        return tuple(self._by_path(PATHS) | dict(self.settings))

    @property
    def first_seed(self) -> int:
        """The seed of the run, and of splits that are drawn before it is complete."""
        return self._value("seed", 0)

    @property
    def cadence(self) -> int | None:
        """The requested steps between evaluations."""
        return self._value("evaluate_every", None)

    @property
    def needs_labels(self) -> bool:
        """Whether a new run needs labels; recipes do, unless a setting names another objective."""
        kind = ObjectiveConfig.members.get(self.settings.get("objective.kind", "classification"))
        return kind is None or bool(kind.needs_labels)

    def batch_of(self, draft: Draft) -> int:
        """Return the requested batch, or that of a draft."""
        return check_whole("batch", self._value("batch", draft.batch))

    def data_config(self, where: str) -> DataConfig:
        """Return the data of a new run."""
        paths = self._by_path(PATHS) | dict(self.settings)
        settings = with_settings({"where": where}, _inside("data", paths))
        return absolute_data(from_dict(DataConfig, settings, where="the settings of the data"))

    def applied(
        self, run: Outline | RunConfig, *, image_size: Size | None = None, steps: int | None = None
    ) -> RunConfig:
        """Return a run with these settings, an image size and another length; all are made before any is checked.

        A short run may need a shorter warm-up, and an image size the patches that fit it.
        """
        sizes = (
            {} if image_size is None else dict.fromkeys(("model.image_size", "preprocessing.image_size"), image_size)
        )
        length = {} if steps is None else {"steps": steps, "minutes": None}
        paths = sizes | self._by_path(PATHS | EXECUTION) | dict(self.settings) | length
        return read_config(with_settings(to_dict(run), paths), "the settings of this run")

    def _value(self, name: str, usual: Any) -> Any:
        """Return a setting that is not inside another, as it is requested."""
        return self._by_path(PATHS).get(name, usual) if name not in self.settings else self.settings[name]

    def _by_path(self, paths: Mapping[str, str]) -> dict[str, Setting]:
        """Return the requested keywords by the paths of their settings: `settings` are made together with them."""
        names = [field.name for field in fields(self) if field.name in paths and self.requests(field.name)]
        values: dict[str, Setting] = {paths[name]: getattr(self, name) for name in names}
        if self.micro_batch == "auto":
            values.pop("execution.micro_batch", None)
        if self.averaging == 0:
            values["averaging"] = None
        if self.root is not None:
            values["data.root"] = absolute(self.root)
        return values


def _inside(name: str, paths: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings inside one, by their paths from there."""
    return {path.removeprefix(f"{name}."): value for path, value in paths.items() if path.startswith(f"{name}.")}
