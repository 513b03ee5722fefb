"""A training run, completely: `config.json` is this, and `vitrail train --config` runs it again."""

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

import vitrail.selfsup.objectives  # noqa: F401 - adds its kinds to the family of objectives
from vitrail.base.errors import ConfigError
from vitrail.base.settings import check_finite, from_dict, setting_differences, to_dict, without_defaults
from vitrail.data.augment.settings import Augmentation
from vitrail.data.preprocessing import Preprocessing
from vitrail.model.family import ModelConfig
from vitrail.model.patches import Size, size_text
from vitrail.runs.bounds import check_bounds
from vitrail.runs.data_config import DataConfig, DataFacts, Role
from vitrail.runs.execution import Execution
from vitrail.training.classification import ClassificationConfig
from vitrail.training.learner import ObjectiveConfig
from vitrail.training.optimizers import OptimizerConfig
from vitrail.training.schedules import Schedule
from vitrail.training.step import Precision

FirstHead = Literal["zeros", "regression"]


@dataclass(frozen=True, kw_only=True)
class StartConfig:
    """Weights to begin with, in place of random ones."""

    path: str
    """The model's file, or folder, of any format that `load` reads."""
    digest: str
    """SHA-256 of its weights; a file that has changed is refused."""
    pickle: bool = False
    """Whether torch's own files may be opened."""
    num_heads: int | None = None
    """Attention heads, where the file does not state them."""
    architecture: str | None = None
    """The model's name in its library, where the file does not state it."""
    head: FirstHead = "zeros"
    """What the head begins with: zeros, as in the paper, or a regression on the features of the training images."""


@dataclass(frozen=True, kw_only=True)
class ExtendConfig:
    """The state of another run to begin with: weights, optimiser and averages; its steps count."""

    run: str
    """The folder of that run."""
    step: int
    """Steps that it had taken."""
    digest: str
    """SHA-256 of its checkpoint."""


@dataclass(frozen=True, kw_only=True)
class Stage:
    """A part of training with smaller images."""

    until: float
    """Where it ends, as a share of all steps."""
    image_size: Size
    """Height and width of its images, in pixels."""


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """Everything that a run is a function of."""

    data: DataConfig
    """The data as requested."""
    facts: DataFacts = field(default_factory=DataFacts)
    """The data as opened."""
    model: ModelConfig
    """The model; `kind` names its family."""
    start: StartConfig | None = None
    """The weights to begin with; None draws them."""
    extends: ExtendConfig | None = None
    """The state to begin with, in place of a new one at step 0."""
    preprocessing: Preprocessing
    augmentation: Augmentation
    objective: ObjectiveConfig = field(default_factory=ClassificationConfig)
    """What is minimised; `kind` names it."""
    optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)
    schedule: Schedule = field(default_factory=Schedule)
    steps: int
    """Updates of the weights, including those of the run that is extended."""
    minutes: float | None = None
    """The time of the run, if it is limited: `steps` is then a first plan, which is corrected as time passes."""
    batch: int
    """Images in an update, over all ranks."""
    averaging: float | None = None
    """Factor of Polyak averaging; None does not average."""
    stages: tuple[Stage, ...] = ()
    """Smaller images first; after the last stage images have the model's own size."""
    patience: int | None = None
    """Evaluations without a better accuracy after which training ends; None never ends early."""
    evaluate_every: int
    """Steps between evaluations."""
    log_every: int
    """Steps between lines of metrics."""
    precision: Precision = "float32"
    """Type of the activations."""
    seed: int = 0
    """Everything random follows from it."""
    execution: Execution = field(default_factory=Execution)

    def __post_init__(self) -> None:
        """Refuse, before anything starts, settings that could not run."""
        settings = to_dict(self)
        check_finite(settings)
        check_bounds(settings)
        if self.data.role not in get_args(Role):
            raise ConfigError(f"data.role is {self.data.role!r}, but must be one of {', '.join(get_args(Role))}.")
        for name in ("steps", "batch", "evaluate_every", "log_every"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} is {getattr(self, name)}, but must be at least 1.")
        if self.patience is not None and self.patience < 1:
            raise ConfigError(f"patience is {self.patience} evaluations, but must be at least 1, or none.")
        if self.averaging is not None and not 0 < self.averaging < 1:
            raise ConfigError(f"averaging is {self.averaging}, but must be between 0 and 1, or none.")
        if self.precision not in get_args(Precision):
            raise ConfigError(f"precision is {self.precision!r}, but must be one of {', '.join(get_args(Precision))}.")
        if self.first_step >= self.steps:
            raise ConfigError(f"steps is {self.steps}, but the run that is extended has {self.first_step}; give more.")
        self.schedule.check(self.steps)
        self._check_sizes()

    def _check_sizes(self) -> None:
        if self.preprocessing.image_size != self.model.image_size:
            raise ConfigError(
                f"preprocessing makes images of {size_text(self.preprocessing.image_size)}, but the model takes "
                f"{size_text(self.model.image_size)}; give both the same size."
            )
        if self.objective.needs_labels and self.facts.labels and self.model.num_classes != len(self.facts.labels):
            raise ConfigError(
                f"the model has {self.model.num_classes} classes, but the data has {len(self.facts.labels)}; "
                "leave num_classes out, and it follows the data."
            )
        self.objective.check(self.model, [stage.image_size for stage in self.stages])
        ends = [stage.until for stage in self.stages]
        if ends != sorted(set(ends)) or not all(0 < end < 1 for end in ends):
            raise ConfigError(f"stages end at {ends}, but must end one after the other, between 0 and 1.")

    @property
    def first_step(self) -> int:
        """The step at which the run begins."""
        return 0 if self.extends is None else self.extends.step

    @property
    def epochs(self) -> float:
        """How often each image is seen."""
        return self.steps * self.batch / max(self.facts.images, 1)

    @property
    def identity(self) -> str:
        """A digest of everything that decides the result."""
        text = json.dumps(without_defaults(_deciding(self)), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def phases(self) -> list[tuple[int, int, Size]]:
        """First step, end and image size of each stage, and of the rest after the last."""
        ends = [round(stage.until * self.steps) for stage in self.stages] + [self.steps]
        sizes = [stage.image_size for stage in self.stages] + [self.preprocessing.image_size]
        return list(zip([0, *ends], ends, sizes, strict=False))

    @property
    def stage_costs(self) -> list[tuple[int, float]]:
        """End of each stage, and what a step of it costs beside one at the last size: about as many pixels."""
        *stages, (_, _, full) = self.phases
        return [(end, math.prod(size) / math.prod(full)) for _, end, size in stages]


def _deciding(config: RunConfig) -> RunConfig:
    """Remove settings that do not decide the result, or may change on resume, such as how many images may be skipped.

    Data, models and states are identified by their digests, not their paths. `check_same` judges files with other
    times.
    """
    start, extends = config.start, config.extends
    return replace(
        config,
        execution=Execution(),
        data=replace(config.data, skip_broken="0", where="", others=(), root=None),
        facts=replace(config.facts, files_digest=None),
        start=start and replace(start, path=""),
        extends=extends and replace(extends, run=""),
    )


def identity(config: RunConfig) -> dict[str, Any]:
    """Return the settings that decide the result."""
    return to_dict(_deciding(config))


def checkpoint_settings(config: RunConfig) -> dict[str, Any]:
    """Return the same as a checkpoint stores it: without class names, which may be a million."""
    return identity(replace(config, facts=replace(config.facts, labels=())))


def differences(ours: RunConfig, theirs: RunConfig) -> list[str]:
    """Return the settings in which two runs differ, as sentences."""
    return setting_differences(identity(ours), identity(theirs))


def with_settings(settings: dict[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return nested settings with some of them changed, by path; `from_dict` checks the result.

    Another `kind` begins with its own defaults: the settings of the kind before it are not its own.
    """
    changed = dict(settings) if changes.get("kind", settings.get("kind")) == settings.get("kind") else {}
    inside: dict[str, dict[str, Any]] = {}
    for path, value in changes.items():
        name, _, rest = path.partition(".")
        if not rest:
            changed[name] = value
        elif isinstance(changed.get(name, None), dict | None):
            inside.setdefault(name, {})[rest] = value
        else:
            raise ConfigError(f"{path} is not a setting: {name} has no settings of its own.")
    return changed | {name: with_settings(changed.get(name) or {}, inner) for name, inner in inside.items()}


def read_config(settings: Any, where: str) -> RunConfig:
    """Make a run's config from plain settings."""
    return from_dict(RunConfig, settings, where=where)
