"""Work out the memory, FLOPs and time of a training run before it starts.

A run is given by --images and --epochs, or by one of the paper's runs: pre-training with --preset jft300m,
imagenet21k or imagenet1k (Table 3), fine-tuning with --preset finetune-imagenet, -cifar, -pets, -flowers or -vtab
(Table 4). Flags win over the preset.

Example: vitrail plan H/14 --preset jft300m
"""

import dataclasses
import math
from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_args

from vitrail.base.errors import ConfigError
from vitrail.cli.report import Positional, Switch, counted, flag, in_bytes, parse_size, print_json, print_table
from vitrail.model.build import configure
from vitrail.recipes import paper
from vitrail.runs.plan import Optimizer, Plan, Precision, plan

Preset = Literal[
    "jft300m",
    "imagenet21k",
    "imagenet1k",
    "finetune-imagenet",
    "finetune-cifar10",
    "finetune-cifar100",
    "finetune-pets",
    "finetune-flowers",
    "finetune-vtab",
]


@dataclass(frozen=True, kw_only=True)
class Arguments:
    """Flags of `vitrail plan`."""

    model: Annotated[str, Positional, flag("MODEL")]
    """A model, such as B/16, R50+B/16 or R50x1."""
    preset: Annotated[Preset | None, flag("|".join(get_args(Preset)), "none")] = None
    """One of the paper's runs."""
    image_size: Annotated[str | None, flag("PIXELS|HxW", "224, or the preset's")] = None
    """Height and width of the images, in pixels."""
    num_classes: int = 1000
    """Outputs of the last layer."""
    images: Annotated[int | None, flag("INT", "1281167, ImageNet-1k, or the preset's")] = None
    """Images in the training set."""
    epochs: Annotated[float | None, flag("FLOAT", "300, or the preset's")] = None
    """Passes over them."""
    batch: Annotated[int | None, flag("INT", "4096, or the preset's")] = None
    """Images in a step, over all devices."""
    devices: int = 1
    """Devices that share the batch."""
    device_flops: Annotated[float, flag("FLOAT", "61.5e12, a TPUv3 core: the paper's device")] = 61.5e12
    """Peak of one device, in FLOP/s."""
    utilisation: float = 0.33
    """Share of the peak that training reaches, from 0 to 1."""
    memory: float = 16.0
    """Memory of one device, in GiB."""
    optimizer: Annotated[Optimizer | None, flag("adam|sgd", "adam, or the preset's")] = None
    """Adam keeps two values for each weight, SGD with momentum one."""
    precision: Precision = "bfloat16"
    """Type of the activations; weights, gradients and optimiser stay in float32."""
    json: Switch = False
    """Write JSON to stdout."""


def run(arguments: Arguments) -> None:
    """Plan and print, beside the paper's figures where it has some."""
    finetuning = arguments.preset in paper.FINETUNING_STEPS
    default_size = str(paper.FINETUNING_SIZE if finetuning else 224)
    config = configure(
        arguments.model,
        image_size=parse_size(arguments.image_size or default_size),
        num_classes=arguments.num_classes,
    )
    given = {
        "images": arguments.images,
        "epochs": arguments.epochs,
        "batch": arguments.batch,
        "optimizer": arguments.optimizer,
    }
    settings = _preset_settings(arguments) | {name: value for name, value in given.items() if value is not None}
    _check(arguments, settings)
    planned = plan(
        config,
        **settings,
        devices=arguments.devices,
        device_flops=arguments.device_flops,
        utilisation=arguments.utilisation,
        memory=arguments.memory * 2**30,
        precision=arguments.precision,
    )
    published = _published(arguments, planned)
    if arguments.json:
        print_json({"model": arguments.model} | dataclasses.asdict(planned) | {"paper": published})
        return
    _show(arguments, planned, published)


def _preset_settings(arguments: Arguments) -> dict[str, Any]:
    """Return the preset's run, or 300 epochs of ImageNet-1k."""
    if arguments.preset in paper.FINETUNING_STEPS:
        images = paper.FINETUNING_STEPS[arguments.preset] * paper.FINETUNING_BATCH
        return {"images": images, "epochs": 1.0, "batch": paper.FINETUNING_BATCH, "optimizer": "sgd"}
    data = arguments.preset or "imagenet1k"
    epochs = 300.0
    if arguments.preset is not None and arguments.epochs is None:
        epochs = float(paper.pretraining_epochs(_short(arguments.model), data))
    return {
        "images": paper.DATASETS[data].images,
        "epochs": epochs,
        "batch": paper.PRETRAINING_BATCH,
        "optimizer": "adam",
    }


def _short(model: str) -> str:
    """Write a model's name as the tables do."""
    return model.replace("ViT-", "").replace("R50x1+", "R50+")


def _check(arguments: Arguments, settings: dict[str, Any]) -> None:
    positive = {name: settings[name] for name in ("images", "epochs", "batch")}
    positive |= {
        "devices": arguments.devices,
        "device_flops": arguments.device_flops,
        "memory": arguments.memory,
    }
    for name, value in positive.items():
        if not 0 < value < math.inf:
            raise ConfigError(f"--{name.replace('_', '-')} is {value}, but must be above 0 and finite.")
    if not 0 < arguments.utilisation <= 1:
        raise ConfigError(f"--utilisation is {arguments.utilisation}, but must be above 0 and at most 1.")


def _published(arguments: Arguments, planned: Plan) -> dict[str, float]:
    """Return the paper's figures for this very run."""
    data = arguments.preset
    if data not in paper.DATASETS or planned.images != paper.DATASETS[data].images:
        return {}
    model = _short(arguments.model)
    found: dict[str, float] = {}
    if data == "jft300m" and (model, planned.epochs) in paper.EXAFLOPS:
        found["exaflops"] = paper.EXAFLOPS[model, int(planned.epochs)]
    if (model, data) in paper.CORE_DAYS and planned.epochs == paper.pretraining_epochs(model, data):
        found["tpuv3_core_days"] = paper.CORE_DAYS[model, data]
    return found


def _show(arguments: Arguments, planned: Plan, published: dict[str, float]) -> None:
    need = planned.cost
    rows = [
        ("parameters", f"{need.parameters:,}", ""),
        ("tokens", str(need.tokens or "-"), ""),
        ("forward pass of one image", counted(need.macs, "MACs"), ""),
        ("steps", f"{planned.steps:,}", f"{planned.images:,} images x {planned.epochs:g} epochs"),
        ("training", f"{planned.exaflops:,.4g} exaFLOPs", _beside(published, "exaflops", "exaFLOPs, Table 6")),
        (
            "work",
            f"{planned.device_days:,.4g} device-days",
            _beside(published, "tpuv3_core_days", "core-days, Table 2")
            or f"at {arguments.device_flops / 1e12:g} TFLOP/s x {arguments.utilisation:.0%}",
        ),
        ("time", f"{planned.days:,.4g} days", f"on {arguments.devices} device{'s' * (arguments.devices > 1)}"),
        ("weights, on each device", in_bytes(planned.weights), ""),
        ("gradients", in_bytes(planned.gradients), ""),
        ("optimiser", in_bytes(planned.optimizer), ""),
        ("activations", in_bytes(planned.activations), f"for {planned.batch_per_device:,} images on each device"),
        ("activations, checkpointed", in_bytes(planned.checkpointed_activations), "blocks computed again"),
        ("largest batch", f"{planned.largest_batch:,}", f"on a device with {arguments.memory:g} GiB"),
        ("largest batch, checkpointed", f"{planned.largest_checkpointed_batch:,}", ""),
    ]
    run_name = f", {arguments.preset}" if arguments.preset else ""
    print_table(f"{arguments.model}{run_name}", ("", "needed", "note"), rows)


def _beside(published: dict[str, float], key: str, unit: str) -> str:
    return f"paper: {published[key]:,.4g} {unit}" if key in published else ""
