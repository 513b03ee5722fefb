"""The keywords of the functions that train, as types, for editors and type checkers.

They are the fields of the requests in `request.py`, `settle.py` and the files of the verbs, which document each;
a test checks that both agree.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypedDict

from vitrail.base.trackers import TrackerName
from vitrail.model.mixer_settings import MixerName
from vitrail.model.patches import Size
from vitrail.runs.execution import Device
from vitrail.selfsup.objective import Probe
from vitrail.training.optimizers import OptimizerName
from vitrail.training.schedules import Shape
from vitrail.training.step import Precision


class RunKeywords(TypedDict, total=False):
    """Keywords of every run."""

    recipe: str | None
    image_size: int | Size | None
    steps: int | None
    epochs: float | None
    minutes: float | None
    batch: int | None
    seed: int | None
    optimizer: OptimizerName | None
    learning_rate: float | None
    schedule: Shape | None
    warmup: int | None
    weight_decay: float | None
    dropout: float | None
    averaging: float | None
    layer_decay: float | None
    freeze: Sequence[str]
    precision: Precision | None
    val_fraction: float | None
    fraction: float | None
    skip_broken: str | None
    root: str | None
    evaluate_every: int | None
    checkpoint_every: int | None
    keep_checkpoints: int | None
    micro_batch: int | Literal["auto"] | None
    workers: int | None
    threads: int | None
    device: Device | None
    recompute: bool
    compile: bool
    shard: bool
    track: Sequence[TrackerName]
    settings: Mapping[str, Any]
    resume: str | Path | None
    restart: bool
    same_data: bool
    out: str | Path | None


class ScratchKeywords(RunKeywords, total=False):
    """Keywords of a run that begins with random weights."""

    model: str | None
    mixer: MixerName | None
    channels: int | None
    config: str | Path | None
    extend: str | Path | None


class ClassifierKeywords(RunKeywords, total=False):
    """Keywords of a run that learns classes."""

    label_smoothing: float | None
    mixup: float | None
    cutmix: float | None
    drop_patches: float | None
    balanced: bool
    class_weights: bool
    patience: int | None


class TrainKeywords(ScratchKeywords, ClassifierKeywords, total=False):
    """Keywords of `vitrail.train`."""


class PretrainKeywords(ScratchKeywords, total=False):
    """Keywords of `vitrail.pretrain`."""

    objective: str | None
    probe: Probe | None


class FinetuneKeywords(ClassifierKeywords, total=False):
    """Keywords of `vitrail.finetune`."""

    pickle: bool
    num_heads: int | None
    architecture: str | None
    rates: Sequence[float]
    quick: bool
    runs: int | None
    dev_fraction: float | None
    frozen: bool


class VtabKeywords(TypedDict, total=False):
    """Keywords of `vitrail.vtab`."""

    tasks: Sequence[str]
    out: str | Path | None
    image_size: int | Size | None
    steps: int | None
    batch: int | None
    learning_rate: float | None
    seed: int
    skip_broken: str
    micro_batch: int | None
    workers: int
    threads: int | None
    device: Device
    num_heads: int | None
    architecture: str | None
    pickle: bool
