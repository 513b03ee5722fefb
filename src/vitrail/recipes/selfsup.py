"""Runs without labels: the paper's masked patch prediction (App. B.1.2), and ones for small data.

The paper's: B/16, batch 4096, a million steps (about 14 epochs of JFT-300M), Adam, rate 2e-4, 10,000 steps of warm-up,
cosine, half of the patches corrupted, mean colours predicted. The paper states no weight decay; there is none here.
Beside it, the published run of masked autoencoders: batch 4096, 1600 epochs of ImageNet, 40 of them to warm up.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from vitrail.data.augment.settings import Augmentation
from vitrail.data.preprocessing import PresetName, preset
from vitrail.model.build import configure
from vitrail.model.config import ViTConfig
from vitrail.model.cost import cost
from vitrail.model.family import ModelConfig
from vitrail.model.patches import Size
from vitrail.recipes.paper import PRETRAINING_BATCH
from vitrail.runs.choose import MUON
from vitrail.runs.choose_pretraining import MAE_WIDTH, SLOW_MUON, small_mae
from vitrail.runs.config import Stage
from vitrail.runs.draft import Draft, Facts
from vitrail.runs.plan import FLOPS_PER_MAC
from vitrail.selfsup.mae import MAEConfig
from vitrail.selfsup.masked_patch import MaskedPatchConfig
from vitrail.selfsup.objective import SelfSupervisedConfig
from vitrail.training.optimizers import OptimizerConfig
from vitrail.training.schedules import Schedule

SMALL_WIDTH = 128


@dataclass(frozen=True, kw_only=True)
class SelfSupRecipe:
    """One objective for one model and one kind of data."""

    name: str
    objective: SelfSupervisedConfig
    model: Callable[[int], ModelConfig]
    """The model for images with a number of channels."""
    image_size: Size
    augmentation: Augmentation
    optimizer: OptimizerConfig
    schedule: Schedule
    batch: int
    steps: int
    about: str
    published: str = ""
    """The result in the paper of the method; empty if it has none."""
    way: PresetName | None = None
    """How images are prepared; None for the reference release's way at 224 pixels, else Hugging Face's."""
    stages: tuple[Stage, ...] = ()
    """Parts of the run with smaller images."""

    @property
    def kind(self) -> str:
        """The name of the objective."""
        return self.objective.kind

    @property
    def exaflops(self) -> float:
        """The arithmetic of the whole run, for images of 3 channels."""
        model, macs, begin = self.model(3), 0.0, 0.0
        sizes = [*((stage.until, stage.image_size) for stage in self.stages), (1.0, self.image_size)]
        for end, size in sizes:
            macs += (end - begin) * cost(replace(model, image_size=size)).macs
            begin = end
        return float(FLOPS_PER_MAC * macs * self.objective.flops_factor(model) * self.steps * self.batch / 1e18)

    def __call__(self, facts: Facts) -> Draft:
        """Return the run on data with these facts."""
        way: PresetName = self.way or ("google" if self.image_size == (224, 224) else "huggingface")
        return Draft(
            model=self.model(facts.channels),
            preprocessing=preset(way, image_size=self.image_size, channels=facts.channels),
            augmentation=self.augmentation,
            objective=self.objective,
            optimizer=self.optimizer,
            schedule=self.schedule,
            batch=self.batch,
            steps=self.steps,
            stages=self.stages,
        )


def base_16(channels: int) -> ModelConfig:
    """Return the paper's B/16 without a head."""
    return configure("B/16", image_size=224, num_classes=0, channels=channels)


def mae_16(channels: int) -> ModelConfig:
    """Return the same with fixed positions, as masked autoencoders have them."""
    return configure("B/16", image_size=224, num_classes=0, channels=channels, positions="sincos-2d", gelu="erf")


def small_model(side: int, patch: int, width: int = SMALL_WIDTH) -> Callable[[int], ModelConfig]:
    """Return a small model of the rule, for one size of images."""
    return lambda channels: ViTConfig(
        dim=width,
        depth=6,
        num_heads=width // 32,
        mlp_dim=2 * width,
        patch_size=(patch, patch),
        image_size=(side, side),
        channels=channels,
        num_classes=0,
        pool="mean",
        positions="sincos-2d",
        gelu="erf",
    )


def _small(name: str, objective: SelfSupervisedConfig, side: int, patch: int, data: str) -> SelfSupRecipe:
    """Return a run on small data: 30,000 steps of 64 images."""
    mae = isinstance(objective, MAEConfig)
    crop = Augmentation(crop="pad", pad=max(side // 16, 1), pad_mode="zero", antialias=True)
    return SelfSupRecipe(
        name=f"{objective.kind}-{name}",
        objective=objective,
        model=small_model(side, patch, MAE_WIDTH if mae else SMALL_WIDTH),
        image_size=(side, side),
        augmentation=crop if side <= 32 else Augmentation(area=(0.3, 1.0), antialias=True),
        optimizer=SLOW_MUON if mae else MUON,
        schedule=Schedule(shape="cosine", peak=2e-3, warmup_steps=1000),
        batch=64,
        steps=30_000,
        about=f"{objective.kind} on {data}, {side} px, patches of {patch} px",
    )


def _recipes() -> dict[str, SelfSupRecipe]:
    masked = MaskedPatchConfig()
    recipes = [
        SelfSupRecipe(
            name="masked-patch-B/16",
            objective=masked,
            model=base_16,
            image_size=(224, 224),
            augmentation=Augmentation(),
            optimizer=OptimizerConfig(),
            schedule=Schedule(shape="cosine", peak=2e-4, warmup_steps=10_000),
            batch=PRETRAINING_BATCH,
            steps=1_000_000,
            about="masked patch prediction with B/16, App. B.1.2",
            published="79.9% on ImageNet after fine-tuning",
        ),
        SelfSupRecipe(
            name="mae-B/16",
            objective=MAEConfig(),
            model=mae_16,
            image_size=(224, 224),
            augmentation=Augmentation(area=(0.2, 1.0), interpolation="bicubic", antialias=True),
            optimizer=OptimizerConfig(beta2=0.95, weight_decay=0.05),
            schedule=Schedule(shape="cosine", peak=1.5e-4 * PRETRAINING_BATCH / 256, warmup_steps=12_500),
            batch=PRETRAINING_BATCH,
            steps=500_000,
            about="masked autoencoder with B/16, He et al. (2021), 1600 epochs of ImageNet",
            published="83.6% on ImageNet after fine-tuning",
        ),
    ]
    for objective in (masked, small_mae(MAE_WIDTH)):
        recipes += [
            _small("cifar10", objective, 32, 4, "CIFAR-10"),
            _small("fashion-mnist", objective, 28, 4, "Fashion-MNIST"),
            _small("photos", objective, 64, 8, "photos"),
        ]
    return {recipe.name: recipe for recipe in recipes}


SELFSUP = _recipes()
