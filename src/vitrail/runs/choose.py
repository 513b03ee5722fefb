"""Good settings for data that nobody has tuned for: the written rule behind `vitrail train FOLDER`.

| what         | rule                                                                                     |
|--------------|------------------------------------------------------------------------------------------|
| image size   | the images' own short side up to 64 pixels; larger ones: 64, 96 from 2,000 images on, 128 from 20,000, 224 from 200,000 |
| patch        | an eighth of the side, so that there are about 64 tokens; 16 pixels from 128 pixels on   |
| model        | dim 192, depth 6 up to 200,000 images; above, S (dim 384, depth 12)                      |
| ...          | see `docs/training.md`                                                                   |
"""

from dataclasses import dataclass
from typing import Any

from vitrail.base.settings import to_dict
from vitrail.data.augment import Augmentation
from vitrail.data.preprocessing import preset
from vitrail.model.config import ViTConfig
from vitrail.train.objective import LossConfig
from vitrail.train.optimizers import OptimizerConfig
from vitrail.train.schedules import Schedule


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What the rule looks at."""

    images: int
    classes: int
    channels: int
    side: int
    """The usual short side of the images, in pixels."""


def choose(facts: Facts) -> dict[str, Any]:
    """Return the settings of a run on such data, by the rule."""
    side, patch = choose_size(facts)
    batch = min(128, max(facts.images // 8, 2))
    batch -= batch % 2
    steps = choose_steps(facts, batch)
    size = (side, side)
    return {
        "vit": to_dict(choose_model(facts, size, patch)),
        "preprocessing": to_dict(preset("google", image_size=size, channels=facts.channels)),
        "augmentation": to_dict(Augmentation(area=(0.4, 1.0), antialias=facts.side > 2 * side)),
        "loss": to_dict(LossConfig(label_smoothing=0.1)),
        "optimizer": to_dict(OptimizerConfig(weight_decay=0.05, beta2=0.99, clip_norm=1.0)),
        "schedule": to_dict(Schedule(shape="cosine", peak=2e-3, warmup_steps=max(steps // 20, 1))),
        "batch": batch,
        "averaging": None,
        "drop_patches": 0.5 if side // patch >= 6 else 0.0,
        "steps": steps,
    }


def choose_size(facts: Facts) -> tuple[int, int]:
    """Return the image's side and the patch's, in pixels."""
    if facts.side <= 64:
        side = facts.side
    else:
        limits = ((200_000, 224), (20_000, 128), (2_000, 96), (0, 64))
        side = next(pixels for least, pixels in limits if facts.images >= least)
    patch = 16 if side >= 128 else max(round(side / 8), 1)
    return max(side // patch, 1) * patch, patch


def choose_model(facts: Facts, size: tuple[int, int], patch: int) -> ViTConfig:
    """Return a Vision Transformer for so many images."""
    large = facts.images >= 200_000
    return ViTConfig(
        dim=384 if large else 192,
        depth=12 if large else 6,
        num_heads=6 if large else 3,
        mlp_dim=1536 if large else 384,
        patch_size=(patch, patch),
        image_size=size,
        channels=facts.channels,
        num_classes=facts.classes,
        pool="mean",
        gelu="erf",
    )


def choose_steps(facts: Facts, batch: int) -> int:
    """Return the number of updates: 40 epochs of few images, fewer of many."""
    epochs = 40 if facts.images < 20_000 else 20
    return max(facts.images * epochs // batch, 1)
