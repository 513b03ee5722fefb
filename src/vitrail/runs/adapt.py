"""Adapting a model to a small task: the written rule behind `vitrail finetune FOLDER`, and a run that follows it.

Models of 10 million parameters or more, and ResNets, are adapted as in Table 4:

| what           | rule                                                                                            |
|----------------|-------------------------------------------------------------------------------------------------|
| image size     | the model's own                                                                                 |
| optimiser      | SGD with momentum 0.9, no weight decay, clipped at norm 1                                       |
| learning rates | 0.003, 0.01, 0.03 and 0.1 are tried; ten times those when only the head learns                  |
| schedule       | a tenth of the steps to warm up, then a cosine to 0                                             |
| batch          | 64; with fewer than 512 images an eighth of them, in eights; from 100,000 images on 512         |
| length         | 8 epochs, but at least 100 and at most 2,500 steps; from 100,000 images on 10,000 steps         |
| dev split      | 10% of the training images; 2% from 20,000 on, 1% from 500,000 on                               |
| images         | up to 64 pixels shifted by a sixteenth of the side; larger ones cropped (30 to 100%); flipped   |

Smaller Vision Transformers differ in what Table 4 was not made for (docs/finetuning.md has the measurements):

| what           | rule                                                                                            |
|----------------|-------------------------------------------------------------------------------------------------|
| optimiser      | Muon for the blocks (ten times the rate), Adam for the rest, weight decay 0.05, clipped at 1    |
| learning rates | 0.001, which is not tried; up to 4,000 images 0.0003 for models that learned from labels, whose |
|                | features are better left nearly as they are; ten times that when only the head learns           |
| batch, length  | batches of at most 64; 8 epochs, but at least 300 and at most 5,000 steps                       |
| few images     | 64 to 800 small images are changed and mixed as by `choose.py`, for at least 1,500 steps, 30 of |
|                | them to warm up                                                                                 |
| first head     | up to 4,000 images a regression on their features, not zeros                                    |
"""

from dataclasses import dataclass, replace

from vitrail.data.augment.settings import Augmentation
from vitrail.model.cost import cost
from vitrail.model.patches import Size
from vitrail.runs.choose import MUON, SMALL_SIDE, choose_batch, vary_few
from vitrail.runs.config import FirstHead
from vitrail.runs.draft import Draft, Facts
from vitrail.runs.first_head import MOST_IMAGES
from vitrail.runs.start import Source
from vitrail.training.optimizers import OptimizerConfig
from vitrail.training.schedules import Schedule

MANY_IMAGES = 100_000
RATES = (0.003, 0.01, 0.03, 0.1)
SGD = OptimizerConfig(name="sgd", clip_norm=1.0)
SMALL_MODEL = 10_000_000
"""Parameters from which on a ViT is adapted as in Table 4."""
VARIED_STEPS = 1_500
"""Fewest steps with few images that vary so much that they take long to learn."""
SMALL_RATE, CAREFUL_RATE = 0.001, 0.0003
HEAD_FACTOR = 10.0
"""How much faster a head learns when nothing else moves."""


@dataclass(frozen=True, kw_only=True)
class Adaptation:
    """How a model is adapted to a task: a row of Table 4, or the rule's choice."""

    steps: int
    batch: int
    rates: tuple[float, ...]
    """Learning rates to try, in rising order."""
    warmup_steps: int
    dev_fraction: float
    """Share of the training images on which the rate is chosen."""
    image_size: Size | None = None
    """Height and width in pixels; None for the model's own."""
    averaging: float | None = None
    """Factor of Polyak averaging."""
    augmentation: Augmentation | None = None
    """None for the rule's choice."""
    optimizer: OptimizerConfig = SGD
    head: FirstHead = "zeros"
    """What the head begins with."""
    varied: bool = False
    """Whether few images are changed by RandAugment and mixed, for a longer time."""


def choose_adaptation(facts: Facts, source: Source) -> Adaptation:
    """Return the settings that the rule chooses for such data and such a model."""
    model = source.config
    if model.grid is not None and cost(model.adapted(num_classes=2)).parameters < SMALL_MODEL:
        return _adapt_small(facts, source.learned_labels)
    many = facts.images >= MANY_IMAGES
    batch = 512 if many else choose_batch(facts)
    steps = 10_000 if many else min(max(round(8 * facts.images / batch), 100), 2_500)
    return Adaptation(
        steps=steps,
        batch=batch,
        rates=RATES,
        warmup_steps=min(steps // 10, 500),
        dev_fraction=0.01 if facts.images >= 500_000 else 0.02 if facts.images >= 20_000 else 0.1,
    )


def _adapt_small(facts: Facts, learned_labels: bool) -> Adaptation:
    """Return the settings for a small ViT: one rate, and Muon, with which it learns in a few hundred steps."""
    few = facts.images <= MOST_IMAGES
    batch = min(choose_batch(facts), 64)
    steps = min(max(round(8 * facts.images / batch), 300), 5_000)
    return Adaptation(
        steps=steps,
        batch=batch,
        rates=(CAREFUL_RATE if few and learned_labels else SMALL_RATE,),
        warmup_steps=steps // 10,
        dev_fraction=0.02 if facts.images >= 20_000 else 0.1,
        optimizer=MUON,
        head="regression" if few else "zeros",
        varied=True,
    )


def adapt(source: Source, facts: Facts, adaptation: Adaptation, *, image_size: Size | None, frozen: bool) -> Draft:
    """Return a run that adapts a model to such data, at the middle rate."""
    config = source.adapted(num_classes=facts.classes, image_size=image_size or adaptation.image_size)
    augmentation = adaptation.augmentation or _augmentation(facts, source, adaptation, min(config.image_size))
    varied = adaptation.varied and augmentation.mixes
    return Draft(
        model=config,
        start=replace(source.start, head=adaptation.head),
        preprocessing=replace(source.preprocessing, image_size=config.image_size),
        augmentation=augmentation,
        optimizer=replace(adaptation.optimizer, frozen=source.backbone if frozen else ()),
        schedule=Schedule(shape="cosine", peak=quick_rate(adaptation.rates), warmup_steps=adaptation.warmup_steps),
        batch=adaptation.batch,
        steps=max(adaptation.steps, VARIED_STEPS) if varied else adaptation.steps,
        averaging=adaptation.averaging,
    )


def quick_rate(rates: tuple[float, ...]) -> float:
    """Return the rate to use when none is tried: the middle one, or the higher of two."""
    return rates[len(rates) // 2]


def _augmentation(facts: Facts, source: Source, adaptation: Adaptation, side: int) -> Augmentation:
    small = max(facts.side, side) <= SMALL_SIDE
    shift = Augmentation(crop="pad", pad=max(side // 16, 1), pad_mode="zero")
    chosen = replace(shift if small else Augmentation(area=(0.3, 1.0)), antialias=source.preprocessing.antialias)
    return vary_few(chosen, facts) if adaptation.varied else chosen
