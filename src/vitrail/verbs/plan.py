"""Compute what a training run needs, beside the paper's figures where it has some."""

from dataclasses import asdict, dataclass, fields
from typing import Any, get_args

from vitrail.base.errors import ConfigError, did_you_mean
from vitrail.base.readable import counted, in_bytes
from vitrail.base.table import Table, Tabular
from vitrail.model.build import config_of
from vitrail.model.contract import Model
from vitrail.model.family import ModelConfig
from vitrail.model.patches import Size
from vitrail.recipes import paper
from vitrail.recipes.paper import Preset
from vitrail.runs.plan import Needs, Optimizer, Precision, work_out


@dataclass(frozen=True, kw_only=True)
class PaperFigures:
    """The paper's figures of a run; None where it has none."""

    exaflops: float | None = None
    """Table 6."""
    tpuv3_core_days: float | None = None
    """Table 2."""


@dataclass(frozen=True, kw_only=True, repr=False)
class Plan(Tabular, Needs):
    """The needs of a run; memory in bytes on each device."""

    model: str
    """The name of the model, or a few words about it."""
    preset: Preset | None
    """The paper's run that the values come from."""
    devices: int
    """Devices that share the batch."""
    device_flops: float
    """Peak of one device, in FLOP/s."""
    utilisation: float
    """Share of the peak that training reaches."""
    memory: float
    """Memory of one device, in GiB."""
    paper: PaperFigures
    """The paper's figures for the same run."""

    def to_dict(self) -> dict[str, Any]:
        """Return everything that was computed as plain values for JSON."""
        published = {name: value for name, value in asdict(self.paper).items() if value is not None}
        needs = asdict(self)
        return {"model": self.model} | {field.name: needs[field.name] for field in fields(Needs)} | {"paper": published}

    def tables(self) -> list[Table]:
        """Return one table with a row for each need."""
        core_days = _beside(self.paper.tpuv3_core_days, "core-days, Table 2")
        speed = f"at {self.device_flops / 1e12:g} TFLOP/s x {self.utilisation:.0%}"
        rows = (
            ("parameters", f"{self.cost.parameters:,}", ""),
            ("tokens", str(self.cost.tokens or "-"), ""),
            ("forward pass of one image", counted(self.cost.macs, "MACs"), ""),
            ("steps", f"{self.steps:,}", f"{self.images:,} images x {self.epochs:g} epochs"),
            ("training", f"{self.exaflops:,.4g} exaFLOPs", _beside(self.paper.exaflops, "exaFLOPs, Table 6")),
            ("work", f"{self.device_days:,.4g} device-days", core_days or speed),
            ("time", f"{self.days:,.4g} days", f"on {self.devices} device{'s' * (self.devices > 1)}"),
            ("weights, on each device", in_bytes(self.weights), ""),
            ("gradients", in_bytes(self.gradients), ""),
            ("optimiser", in_bytes(self.optimizer), ""),
            ("activations", in_bytes(self.activations), f"for {self.batch_per_device:,} images on each device"),
            ("activations, checkpointed", in_bytes(self.checkpointed_activations), "blocks computed again"),
            ("largest batch", f"{self.largest_batch:,}", f"on a device with {self.memory:g} GiB"),
            ("largest batch, checkpointed", f"{self.largest_checkpointed_batch:,}", ""),
        )
        title = self.model + (f", {self.preset}" if self.preset else "")
        return [Table(title=title, columns=("", "needed", "note"), rows=rows)]


def plan(
    model: str | ModelConfig | Model,
    *,
    preset: Preset | None = None,
    image_size: int | Size | None = None,
    num_classes: int | None = None,
    images: int | None = None,
    epochs: float | None = None,
    batch: int | None = None,
    devices: int = 1,
    device_flops: float = 61.5e12,
    utilisation: float = 0.33,
    memory: float = 16.0,
    optimizer: Optimizer | None = None,
    precision: Precision = "bfloat16",
) -> Plan:
    """Work out the memory, FLOPs and time of a training run before it starts.

    A run has `images` and `epochs`, or is one of the paper's by `preset`; other keywords win over the preset, and
    without either 300 epochs of ImageNet-1k are meant. `model` is a name, a config or a model; a name is taken at
    224 px with 1000 classes, for fine-tuning at 384 px. `device_flops` is the peak of a device (of a TPUv3 core, the
    paper's device), of which training reaches the share `utilisation`; `memory` is in GiB. Adam keeps two values for
    each weight, SGD with momentum one; `precision` is the type of the activations.

    >>> run = vitrail.plan("H/14", preset="jft300m")
    >>> round(run.exaflops), run.paper.exaflops
    (4258, 4262.0)
    """
    if preset is not None and preset not in get_args(Preset):
        presets = get_args(Preset)
        raise ConfigError(
            f"there is no preset {preset!r}; choose one of {', '.join(presets)}.{did_you_mean(preset, presets)}"
        )
    config = config_of(model, **_changes(model, preset, image_size, num_classes))
    name = model if isinstance(model, str) else config.summary
    usual = _usual(_short(name), preset, timed=epochs is not None)
    run = _Run(
        images=usual.images if images is None else images,
        epochs=usual.epochs if epochs is None else epochs,
        batch=usual.batch if batch is None else batch,
        optimizer=optimizer or usual.optimizer,
    )
    _check(asdict(run) | {"devices": devices, "device_flops": device_flops, "memory": memory}, utilisation)
    needs = work_out(
        config,
        images=run.images,
        epochs=run.epochs,
        batch=run.batch,
        devices=devices,
        device_flops=device_flops,
        utilisation=utilisation,
        memory=memory * 2**30,
        optimizer=run.optimizer,
        precision=precision,
    )
    return Plan(
        **vars(needs),
        model=name,
        preset=preset,
        devices=devices,
        device_flops=device_flops,
        utilisation=utilisation,
        memory=memory,
        paper=_published(_short(name), preset, needs),
    )


_LEAST, _MOST = 1e-30, 1e30
"""Beyond them the results are no longer finite."""


@dataclass(frozen=True, kw_only=True)
class _Run:
    """How long a run is, and how it learns."""

    images: int
    epochs: float
    batch: int
    optimizer: Optimizer


def _changes(
    model: str | ModelConfig | Model, preset: str | None, image_size: int | Size | None, num_classes: int | None
) -> dict[str, Any]:
    """Return the fields of the config to change: a name has the size of the run, a config or a model its own."""
    if isinstance(model, str):
        side = paper.FINETUNING_SIZE if preset in paper.FINETUNING_STEPS else 224
        return {"image_size": image_size or side, "num_classes": 1000 if num_classes is None else num_classes}
    changes = {"image_size": image_size, "num_classes": num_classes}
    return {name: value for name, value in changes.items() if value is not None}


def _usual(model: str, preset: str | None, *, timed: bool) -> _Run:
    """Return the preset's run, or 300 epochs of ImageNet-1k; a run that is `timed` needs no length of the paper's."""
    if preset in paper.FINETUNING_STEPS:
        images = paper.FINETUNING_STEPS[preset] * paper.FINETUNING_BATCH
        return _Run(images=images, epochs=1.0, batch=paper.FINETUNING_BATCH, optimizer="sgd")
    data = preset or "imagenet1k"
    epochs = 300.0 if preset is None or timed else float(paper.pretraining_epochs(model, data))
    return _Run(images=paper.DATASETS[data].images, epochs=epochs, batch=paper.PRETRAINING_BATCH, optimizer="adam")


def _short(model: str) -> str:
    """Write a model's name as the tables do."""
    return model.replace("ViT-", "").replace("R50x1+", "R50+")


def _check(settings: dict[str, Any], utilisation: float) -> None:
    for name in ("images", "epochs", "batch", "devices", "device_flops", "memory"):
        if not _LEAST <= settings[name] <= _MOST:
            raise ConfigError(f"{name} is {settings[name]}, but must be above 0, from {_LEAST:g} to {_MOST:g}.")
    if not _LEAST <= utilisation <= 1:
        raise ConfigError(f"utilisation is {utilisation}, but must be above 0 and at most 1.")


def _published(model: str, preset: str | None, needs: Needs) -> PaperFigures:
    """Return the paper's figures for the same run."""
    if preset not in paper.DATASETS or needs.images != paper.DATASETS[preset].images:
        return PaperFigures()
    exaflops = core_days = None
    if preset == "jft300m" and (model, needs.epochs) in paper.EXAFLOPS:
        exaflops = paper.EXAFLOPS[model, int(needs.epochs)]
    if (model, preset) in paper.CORE_DAYS and needs.epochs == paper.pretraining_epochs(model, preset):
        core_days = paper.CORE_DAYS[model, preset]
    return PaperFigures(exaflops=exaflops, tpuv3_core_days=core_days)


def _beside(value: float | None, unit: str) -> str:
    return "" if value is None else f"paper: {value:,.4g} {unit}"
