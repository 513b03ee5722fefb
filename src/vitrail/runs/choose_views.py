"""Good settings for learning by comparing views (DINO, MoCo v3) where nobody has tuned: rows of `choose_pretraining`.

| what       | rule                                                                                              |
|------------|---------------------------------------------------------------------------------------------------|
| model      | that of `vitrail train`: nothing is hidden from its convolutions, and it has a quarter of the     |
|            | tokens that the other objectives need; DINO's with a class token, whose attention is shown        |
| views      | crops of 40 to 100% of the image; colours as published                                            |
| blur       | deviations of 0.1 to 2 pixels at 224 pixels, in proportion at other sides; none up to 64 pixels,  |
|            | where it would be less than half a pixel                                                          |
| local      | 4 views (8 from 200,000 images on) of 5 to 40%: half of the published, since a step on a small    |
|            | machine is short of time and not of views                                                         |
| prototypes | one for about 100 images; a power of 2 from 256 to 65,536                                         |
| teacher    | below 200,000 images it follows faster than published (0.98) and stays sharp (temperature 0.04),  |
|            | since a few thousand steps are too few for a slow one: its answers became all the same            |
| optimiser  | DINO: Adam at 5e-4, weight decay from 0.04 to 0.4, clip 3, as published; under Muon at the rate   |
|            | of the other objectives its answers became all the same. MoCo: as the other objectives            |
| heads      | DINO: 4 times the model's width, at most 2,048; MoCo: 8 times, at most 4,096                      |
| batch      | DINO: as the other objectives; MoCo: four times that, which is where its negatives come from      |
| images     | MoCo: half the side for nine tenths of the steps, in which it sees three times as many            |
"""

import math
from dataclasses import replace

from vitrail.data.augment.crop import Range
from vitrail.data.augment.settings import Augmentation
from vitrail.model.config import ViTConfig
from vitrail.runs.choose import MANY_IMAGES, SMALL_SIDE, choose_model
from vitrail.runs.config import Stage
from vitrail.runs.draft import Facts
from vitrail.selfsup.dino import DinoConfig
from vitrail.selfsup.moco import MocoConfig
from vitrail.training.optimizers import OptimizerConfig

IMAGES_FOR_A_PROTOTYPE = 100
DINO_OPTIMIZER = OptimizerConfig(weight_decay=0.04, weight_decay_end=0.4, clip_norm=3.0)
DINO_RATE = 5e-4
FEWEST, MOST = 256, 65_536
PUBLISHED_SIDE = 224
AREA = (0.4, 1.0)
PATCH = 8
"""Side of a patch of `choose_model` in pixels, or a half of it at 224 pixels."""
SMALL_UNTIL = 0.9
"""The share of steps in which images are small."""
SHARP = 2.0
"""The largest deviation of the blur at the published side, in pixels."""


def view(side: int, *, area: Range, blur: float, solarize: float = 0.0) -> Augmentation:
    """Return one of the published strengths for images of some side."""
    small = side <= SMALL_SIDE
    return Augmentation(
        area=area,
        brightness=0.4,
        contrast=0.4,
        saturation=0.2,
        hue=0.1,
        jitter=0.8,
        grey=0.2,
        blur=0.0 if small else blur,
        blur_deviation=(0.1, max(SHARP * side / PUBLISHED_SIDE, 0.1)),
        solarize=solarize,
        interpolation="bilinear" if small else "bicubic",  # whole batches of small images are cut at once, bilinearly
        antialias=True,
    )


def first_view(side: int, area: Range = AREA) -> Augmentation:
    """Return the first of two strengths: always blurred."""
    return view(side, area=area, blur=1.0)


def second_view(side: int, area: Range = AREA) -> Augmentation:
    """Return the second: rarely blurred, sometimes solarized."""
    return view(side, area=area, blur=0.1, solarize=0.2)


def local_view(side: int) -> Augmentation:
    """Return what a local view of images of some side is."""
    return view(side, area=(0.05, 0.4), blur=0.5)


def prototypes_for(images: int) -> int:
    """Return the outputs of DINO's head for a number of images."""
    return min(max(2 ** round(math.log2(max(images / IMAGES_FOR_A_PROTOTYPE, 1))), FEWEST), MOST)


def token_model(facts: Facts, side: int) -> ViTConfig:
    """Return the model of `vitrail train`, with a class token as features."""
    return replace(choose_model(facts, side), pool="class-token", class_token=True)


def dino_for(facts: Facts, side: int, width: int) -> DinoConfig:
    """Return DINO for such data and a model of some width."""
    many = facts.images >= MANY_IMAGES
    return DinoConfig(
        second=second_view(side),
        local=local_view(side),
        local_views=8 if many else 4,
        momentum=0.996 if many else 0.98,
        teacher_temperature_end=0.07 if many else 0.04,
        prototypes=prototypes_for(facts.images),
        hidden=min(4 * width, 2048),
        frozen_prototypes=0.05,
    )


def small_first(side: int) -> tuple[Stage, ...]:
    """Return the part of a run in which images have half their side, in whole patches; small images have none."""
    half = side // 2 // PATCH * PATCH
    return (Stage(until=SMALL_UNTIL, image_size=(half, half)),) if half >= 2 * PATCH else ()


def moco_for(side: int, width: int) -> MocoConfig:
    """Return MoCo v3 for such data and a model of some width."""
    return MocoConfig(second=second_view(side), hidden=min(8 * width, 4096))
