"""Work out the memory, FLOPs and time of a training run before it starts.

A run is described by --images and --epochs, or is one of the paper's runs (--preset), of which flags change parts.

Example: vitrail plan H/14 --preset jft300m
"""

from dataclasses import dataclass
from typing import Annotated, Literal

import vitrail
from vitrail.cli.report import Positional, Switch, flag, parse_size, print_json
from vitrail.cli.tables import print_tables
from vitrail.recipes.paper import Preset


@dataclass(frozen=True, kw_only=True)
class Arguments:
    """Flags of `vitrail plan`."""

    model: Annotated[str, Positional, flag("MODEL")]
    """A model, such as B/16, R50+B/16 or R50x1."""
    preset: Annotated[Preset | None, flag("NAME", "none")] = None
    """Pre-training of Table 3 (jft300m, imagenet21k, imagenet1k), or fine-tuning of Table 4 (finetune-imagenet,
    finetune-cifar10, finetune-cifar100, finetune-pets, finetune-flowers, finetune-vtab)."""
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
    optimizer: Annotated[Literal["adam", "sgd"] | None, flag("adam|sgd", "adam, or the preset's")] = None
    """Adam keeps two values for each weight, SGD with momentum one."""
    precision: Literal["float32", "bfloat16"] = "bfloat16"
    """Type of the activations; weights, gradients and optimiser stay in float32."""
    json: Switch = False
    """Write JSON to stdout."""


def run(arguments: Arguments) -> None:
    """Plan and print, beside the paper's figures where it has some."""
    plan = vitrail.plan(
        arguments.model,
        preset=arguments.preset,
        image_size=None if arguments.image_size is None else parse_size(arguments.image_size),
        num_classes=arguments.num_classes,
        images=arguments.images,
        epochs=arguments.epochs,
        batch=arguments.batch,
        devices=arguments.devices,
        device_flops=arguments.device_flops,
        utilisation=arguments.utilisation,
        memory=arguments.memory,
        optimizer=arguments.optimizer,
        precision=arguments.precision,
    )
    if arguments.json:
        print_json(plan.to_dict())
        return
    print_tables(plan.tables(), arguments)
