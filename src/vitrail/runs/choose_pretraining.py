"""Good settings for learning from images without labels: the written rule behind `vitrail pretrain FOLDER`.

| what       | rule                                                                                              |
|------------|---------------------------------------------------------------------------------------------------|
| image size | as for `vitrail train` (`choose.py`)                                                              |
| model      | the same sizes, but patches of pixels (no convolutions, which would see what is hidden), fixed    |
|            | sine-cosine positions, and the mean over patches as features; MAE of fewer than 200,000 images,   |
|            | whose encoder sees a quarter of the patches, has dim 192                                          |
| patch      | an eighth of the side, so that there are 64 tokens; at 224 pixels 16 pixels                       |
| optimiser  | Muon for the blocks (rate 0.02; MAE of fewer than 200,000 images 0.008), Adam for the rest        |
|            | (0.002), weight decay 0.05, clip 1                                                                |
| schedule   | a tenth of the rule's length (or of a shorter run) to warm up, then by cosine to 0                |
| batch      | 64; with fewer than 512 images an eighth of them, in eights; from 200,000 images on 256           |
| length     | twice as many images as `vitrail train`                                                           |
| images     | small ones (up to 64 pixels) shifted by a sixteenth of the side; larger ones cropped; all flipped |

Each objective has an entry in `RULES`, which may differ from this table.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from vitrail.base.errors import ConfigError, did_you_mean
from vitrail.data.augment.settings import Augmentation
from vitrail.data.preprocessing import preset
from vitrail.model.config import ViTConfig
from vitrail.model.family import ModelConfig
from vitrail.runs.choose import (
    MANY_IMAGES,
    MUON,
    choose_augmentation,
    choose_batch,
    choose_model,
    choose_side,
    choose_steps,
)
from vitrail.runs.choose_views import (
    DINO_OPTIMIZER,
    DINO_RATE,
    dino_for,
    first_view,
    moco_for,
    small_first,
    token_model,
)
from vitrail.runs.config import Stage
from vitrail.runs.draft import Draft, Facts
from vitrail.selfsup.mae import DecoderConfig, MAEConfig
from vitrail.selfsup.masked_patch import MaskedPatchConfig
from vitrail.selfsup.objective import SelfSupervisedConfig
from vitrail.training.optimizers import OptimizerConfig
from vitrail.training.schedules import Schedule

DEFAULT = "masked-patch"
"""The paper's own objective."""
SLOW_MUON = replace(MUON, muon_rate=4.0)
"""For small autoencoders: with Muon at 0.02 they learn no more in half an hour than in six minutes (docs/log.md)."""

MAE_WIDTH = 192
"""Of small autoencoders: 128 gives worse features in the same time (docs/log.md)."""


def plain_model(facts: Facts, side: int) -> ViTConfig:
    """Return a Vision Transformer on pixels, whose features are the mean over patches."""
    patch = 16 if side >= 224 else side // 8
    return replace(choose_model(facts, side), backbone=None, patch_size=(patch, patch), positions="sincos-2d")


def mae_model(facts: Facts, side: int) -> ModelConfig:
    """Return that model, a half wider if it is small: an encoder that sees a quarter of the patches has the time."""
    plain, width = plain_model(facts, side), MAE_WIDTH
    small = facts.images < MANY_IMAGES
    return replace(plain, dim=width, num_heads=width // 32, mlp_dim=2 * width) if small else plain


def small_mae(width: int) -> MAEConfig:
    """Return an autoencoder with one block of half the model's width as decoder, in heads of 32 as published.

    He et al. (2021) find one block as good as eight after fine-tuning, and it leaves the time to the encoder.
    """
    return MAEConfig(decoder=DecoderConfig(dim=width // 2, depth=1, num_heads=max(width // 64, 1), mlp_dim=width))


@dataclass(frozen=True, kw_only=True)
class Rule:
    """What an objective starts from, for data with some facts, at a side in pixels."""

    objective: Callable[[Facts, int], SelfSupervisedConfig]
    model: Callable[[Facts, int], ModelConfig] = plain_model
    augmentation: Callable[[Facts, int], Augmentation] = choose_augmentation
    optimizer: Callable[[Facts], OptimizerConfig] = lambda _: MUON
    peak: float = 2e-3
    """The highest learning rate."""
    length: float = 2.0
    """How many times the images of `vitrail train`."""
    batches: int = 1
    """How many times the images in a step of the table above, as far as there are enough."""
    stages: Callable[[int], tuple[Stage, ...]] = lambda _: ()
    """Parts of the run with smaller images, by the side of the images."""

    def __call__(self, facts: Facts) -> Draft:
        """Return a run on such data."""
        side, batch = choose_side(facts), choose_batch(facts)
        batch = max(min(self.batches * batch, facts.images // 2 * 2), batch)
        steps = round(self.length * choose_steps(facts, batch))
        return Draft(
            model=self.model(facts, side),
            preprocessing=preset("huggingface", image_size=(side, side), channels=facts.channels),
            augmentation=self.augmentation(facts, side),
            objective=self.objective(facts, side),
            optimizer=self.optimizer(facts),
            schedule=Schedule(shape="cosine", peak=self.peak, warmup_steps=max(steps // 10, 1)),
            batch=batch,
            steps=steps,
            stages=self.stages(side),
        )


RULES: dict[str, Rule] = {
    "masked-patch": Rule(objective=lambda _, __: MaskedPatchConfig()),
    "mae": Rule(
        objective=lambda facts, side: small_mae(mae_model(facts, side).feature_width),
        model=mae_model,
        optimizer=lambda facts: MUON if facts.images >= MANY_IMAGES else SLOW_MUON,
    ),
    "dino": Rule(
        objective=lambda facts, side: dino_for(facts, side, token_model(facts, side).feature_width),
        model=token_model,
        augmentation=lambda _, side: first_view(side),
        optimizer=lambda _: DINO_OPTIMIZER,
        peak=DINO_RATE,
    ),
    "moco": Rule(
        objective=lambda facts, side: moco_for(side, choose_model(facts, side).feature_width),
        model=choose_model,
        augmentation=lambda _, side: first_view(side),
        batches=4,
        stages=small_first,
    ),
}
"""One entry for each objective, by its kind."""


def find_rule(objective: str | None) -> Rule:
    """Return the rule of an objective by its name; None is the paper's own."""
    name = DEFAULT if objective is None else objective
    if name not in RULES:
        known = ", ".join(RULES)
        raise ConfigError(f"`objective` is {name!r}, but must be one of {known}.{did_you_mean(name, RULES)}")
    return RULES[name]
