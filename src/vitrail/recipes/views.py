"""Runs that compare views: DINO and MoCo v3 as published, and ones for small machines.

DINO's: S/16 with stochastic depth 0.1, batch 1024, 800 epochs of ImageNet, AdamW at 5e-4 x batch / 256, 10 epochs of
warm-up, a cosine to 1e-6, weight decay from 0.04 to 0.4, gradients clipped at 3; the teacher's temperature rises for 30
epochs, and the prototypes stay for one. MoCo v3: S/16 and B/16, batch 4096, 300 epochs, AdamW at 1.5e-4 x batch / 256,
40 epochs of warm-up, weight decay 0.1; fixed sine-cosine positions, the patch projection at its random values.

The small ones have the rule's settings (`runs/choose_views.py`) in a fixed number of steps.
"""

from dataclasses import replace

from vitrail.model.build import configure
from vitrail.model.family import ModelConfig
from vitrail.recipes.selfsup import SelfSupRecipe
from vitrail.runs.choose import MUON, choose_model
from vitrail.runs.choose_views import (
    DINO_OPTIMIZER,
    DINO_RATE,
    dino_for,
    first_view,
    local_view,
    moco_for,
    second_view,
    small_first,
    token_model,
)
from vitrail.runs.draft import Facts
from vitrail.selfsup.dino import DinoConfig
from vitrail.selfsup.moco import MocoConfig
from vitrail.training.optimizers import OptimizerConfig
from vitrail.training.schedules import Schedule

IMAGENET = 1_281_167
"""Images in an epoch of the published runs."""
DINO_BATCH, DINO_EPOCHS = 1024, 800
MOCO_BATCH, MOCO_EPOCHS = 4096, 300
MOCO_CROPS = (0.08, 1.0)
SIZE = (224, 224)
FROZEN_PROJECTION = ("embedding.projection.*",)
CIFAR10, PHOTOS = 50_000, 2_000
"""Images that the small recipes are made for."""


def steps_of(epochs: int, batch: int) -> int:
    """Count the updates of epochs of ImageNet."""
    return round(epochs * IMAGENET / batch)


def _dino() -> SelfSupRecipe:
    return SelfSupRecipe(
        name="dino-S/16",
        objective=DinoConfig(
            second=second_view(224),
            local=local_view(224),
            temperature_warmup=30 / DINO_EPOCHS,
            frozen_prototypes=1 / DINO_EPOCHS,
        ),
        model=lambda channels: configure(
            "S/16", image_size=224, num_classes=0, channels=channels, stochastic_depth=0.1, gelu="erf"
        ),
        image_size=SIZE,
        augmentation=first_view(224),
        optimizer=OptimizerConfig(weight_decay=0.04, weight_decay_end=0.4, clip_norm=3.0),
        schedule=Schedule(peak=5e-4 * DINO_BATCH / 256, end=1e-6, warmup_steps=steps_of(10, DINO_BATCH)),
        batch=DINO_BATCH,
        steps=steps_of(DINO_EPOCHS, DINO_BATCH),
        about="DINO with S/16, 800 epochs of ImageNet",
        published="77.0% on ImageNet, linear; 74.5% by neighbours",
        way="imagenet",
    )


def _moco(name: str, published: str) -> SelfSupRecipe:
    def model(channels: int) -> ModelConfig:
        return configure(name, image_size=224, num_classes=0, channels=channels, positions="sincos-2d", gelu="erf")

    return SelfSupRecipe(
        name=f"moco-{name}",
        objective=MocoConfig(second=second_view(224, MOCO_CROPS)),
        model=model,
        image_size=SIZE,
        augmentation=first_view(224, MOCO_CROPS),
        optimizer=OptimizerConfig(weight_decay=0.1, frozen=FROZEN_PROJECTION),
        schedule=Schedule(peak=1.5e-4 * MOCO_BATCH / 256, warmup_steps=steps_of(40, MOCO_BATCH)),
        batch=MOCO_BATCH,
        steps=steps_of(MOCO_EPOCHS, MOCO_BATCH),
        about=f"MoCo v3 with {name}, 300 epochs of ImageNet",
        published=published,
        way="imagenet",
    )


def _small(kind: str, data: str, images: int, side: int, title: str) -> SelfSupRecipe:
    """Return a run on small data: 64 images a step for DINO, 256 for MoCo, 15,000 and 5,000 steps."""
    dino, facts = kind == "dino", Facts(images=images, classes=0, channels=3, side=side)
    model = token_model if dino else choose_model
    width = model(facts, side).feature_width
    return SelfSupRecipe(
        name=f"{kind}-{data}",
        objective=dino_for(facts, side, width) if dino else moco_for(side, width),
        model=lambda channels: model(replace(facts, channels=channels), side),
        image_size=(side, side),
        augmentation=first_view(side),
        optimizer=DINO_OPTIMIZER if dino else MUON,
        schedule=Schedule(peak=DINO_RATE if dino else 2e-3, warmup_steps=1000 if dino else 400),
        batch=64 if dino else 256,
        steps=15_000 if dino else 5_000,
        about=f"{kind} on {title}, {side} px",
        stages=() if dino else small_first(side),
    )


def view_recipes() -> list[SelfSupRecipe]:
    """Return the recipes of both objectives."""
    small = [
        _small(kind, *row)
        for kind in ("dino", "moco")
        for row in (("cifar10", CIFAR10, 32, "CIFAR-10"), ("photos", PHOTOS, 64, "photos"))
    ]
    published = [
        _dino(),
        _moco("S/16", "73.4% on ImageNet, linear"),
        _moco("B/16", "76.7% on ImageNet, linear"),
    ]
    return [*published, *small]
