"""Good settings for data without tuned ones: the written rule behind `vitrail train FOLDER`.

| what       | rule                                                                                              |
|------------|---------------------------------------------------------------------------------------------------|
| image size | the images' own short side up to 64 pixels, rounded up to a multiple of 8; larger images get 64   |
|            | pixels, 96 from 2,000 images on, 128 from 20,000, 224 from 200,000                                |
| model      | a hybrid of the root alone (a 7x7 convolution and a pooling, 32 channels, a quarter of the size)   |
|            | and a small ViT: dim 128, depth 6; from 200,000 images on dim 384, depth 12                       |
| patch      | 2x2 cells of the root's map (8 pixels); 4x4 at 224 pixels: at most 256 tokens                     |
| optimiser  | Muon for the blocks and Adam for the rest, both at 0.008: four times the learning rate of 0.002,  |
|            | which Adam alone would have; for the larger model 0.02 and 0.002; weight decay 0.05, clip 1       |
| schedule   | a tenth of the rule's length (or of a shorter run) to warm up, then linearly to 0                 |
| batch      | 64; with fewer than 512 images an eighth of them, in eights; from 20,000 images on 128, from      |
|            | 200,000 on 256                                                                                    |
| length     | 12 epochs up to 20,000 images, but at least 300 steps, with few small images (below) 3,000; then  |
|            | 240,000 images, at least 2 epochs                                                                 |
| images     | small ones (up to 64 pixels) shifted by a sixteenth of the side; larger ones cropped; all flipped |
| few images | 64 to 800 small ones are changed more, lest they are learned by heart: RandAugment (2 layers,     |
|            | magnitude 5), and pairs mixed, half by mixup (0.8) and half by cutmix (1.0)                       |

Measured on two cores; docs/log.md has what was tried.
"""

from dataclasses import replace

from vitrail.data.augment.settings import Augmentation
from vitrail.data.preprocessing import preset
from vitrail.model.backbone import BackboneConfig
from vitrail.model.config import ViTConfig
from vitrail.runs.draft import Draft, Facts
from vitrail.training.optimizers import OptimizerConfig
from vitrail.training.schedules import Schedule

SMALL_SIDE = 64
FEW_IMAGES, SOME_IMAGES, MANY_IMAGES = range(64, 801), 20_000, 200_000
MUON = OptimizerConfig(name="muon", weight_decay=0.05, beta2=0.99, clip_norm=1.0)
SMALL_MUON = replace(MUON, muon_rate=4.0, rest_rate=4.0)
"""For models that `choose_model` makes of fewer than 200,000 images."""
FEWEST_STEPS, VARIED_STEPS = 300, 3_000
"""The shortest runs of the rule: of any images, and of few that vary so much that they take long to learn."""


def choose(facts: Facts) -> Draft:
    """Return the run that the rule chooses for such data."""
    side = choose_side(facts)
    batch = choose_batch(facts, most=64 if facts.images < SOME_IMAGES else 128)
    augmentation = vary_few(choose_augmentation(facts, side), facts)
    steps = max(choose_steps(facts, batch), VARIED_STEPS if augmentation.mixes else 0)
    return Draft(
        model=choose_model(facts, side),
        preprocessing=preset("huggingface", image_size=(side, side), channels=facts.channels),
        augmentation=augmentation,
        optimizer=MUON if facts.images >= MANY_IMAGES else SMALL_MUON,
        schedule=Schedule(shape="linear", peak=2e-3, warmup_steps=max(steps // 10, 1)),
        batch=batch,
        steps=steps,
    )


def choose_side(facts: Facts) -> int:
    """Return the side that images are brought to, in pixels."""
    if facts.side <= SMALL_SIDE:
        return -(-facts.side // 8) * 8
    limits = ((MANY_IMAGES, 224), (SOME_IMAGES, 128), (2_000, 96), (0, 64))
    return next(pixels for least, pixels in limits if facts.images >= least)


def choose_model(facts: Facts, side: int) -> ViTConfig:
    """Return a hybrid of a convolutional root and a Vision Transformer for this many images."""
    large = facts.images >= MANY_IMAGES
    patch = 4 if side >= 224 else 2  # cells of 4 pixels
    return ViTConfig(
        backbone=BackboneConfig(blocks=(), width=32, norm_groups=16),
        dim=384 if large else 128,
        depth=12 if large else 6,
        num_heads=6 if large else 4,
        mlp_dim=1536 if large else 256,
        patch_size=(patch, patch),
        image_size=(side, side),
        channels=facts.channels,
        num_classes=facts.classes,
        pool="mean",
        gelu="erf",
    )


def choose_augmentation(facts: Facts, side: int) -> Augmentation:
    """Shift small images, crop large ones, flip all."""
    if facts.side <= SMALL_SIDE:
        return Augmentation(crop="pad", pad=max(side // 16, 1), pad_mode="zero", antialias=True)
    return Augmentation(area=(0.3, 1.0), antialias=True)


def vary_few(augmentation: Augmentation, facts: Facts) -> Augmentation:
    """Where few images would be shifted and no more, change them by RandAugment, and mix pairs of them.

    Of fewer still, a step has no pairs for several ranks.
    """
    varies = facts.images in FEW_IMAGES and augmentation.crop == "pad"
    return replace(augmentation, layers=2, magnitude=5.0, mixup=0.8, cutmix=1.0) if varies else augmentation


def choose_batch(facts: Facts, *, most: int = 64) -> int:
    """Return the images in a step, at most `most` below 200,000 images; a multiple of 8, or an even number below it."""
    if facts.images >= MANY_IMAGES:
        return 256
    images = min(most, facts.images // 8)
    return images // 8 * 8 or max(images // 2 * 2, 2)


def choose_steps(facts: Facts, batch: int) -> int:
    """Return the number of updates."""
    epochs = min(max(240_000 / facts.images, 2.0), 12.0)
    return max(round(facts.images * epochs / batch), FEWEST_STEPS)
