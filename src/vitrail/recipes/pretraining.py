"""Every row of Table 3 as a run: `vitrail train DATA --recipe imagenet21k-B/16`.

Batch 4096, Adam, 224 px, 10,000 steps of warm-up, inception crop and flip, the pre-training head with its tanh layer.
As the authors added later, JFT-300M and ImageNet-21k use sigmoid cross-entropy. On ImageNet, gradients are clipped at
a global norm of 1. Gradients, optimiser and schedule are the paper's; the data is that of DATA.
"""

from dataclasses import dataclass

from vitrail.data.augment.settings import Augmentation
from vitrail.data.preprocessing import preset
from vitrail.model.build import configure
from vitrail.model.cost import cost
from vitrail.recipes.paper import DATASETS, EXAFLOPS, PRETRAINING_BATCH, SCRATCH_RESULTS, TABLE_3, Pretraining
from vitrail.runs.draft import Draft, Facts
from vitrail.runs.plan import FLOPS_PER_MAC
from vitrail.training.classification import ClassificationConfig
from vitrail.training.optimizers import OptimizerConfig
from vitrail.training.schedules import Schedule

WARMUP_STEPS = 10_000
LINEAR_END = 1e-5
HEAD_BIAS = -10.0
"""Of big_vision for sigmoid loss on many classes: a new model answers no to all of them."""


@dataclass(frozen=True, kw_only=True)
class PretrainingRecipe:
    """One model, one data set, one length of Table 3."""

    name: str
    model: str
    epochs: int
    row: Pretraining

    @property
    def exaflops(self) -> float:
        """The arithmetic of the whole run."""
        data = DATASETS[self.row.data]
        need = cost(configure(self.model, image_size=224, num_classes=data.num_classes))
        return FLOPS_PER_MAC * need.macs * data.images * self.epochs / 1e18

    @property
    def published(self) -> str:
        """The paper's result of this run; empty if it has none."""
        return SCRATCH_RESULTS.get((self.model, self.row.data, self.epochs), "")

    @property
    def published_exaflops(self) -> float | None:
        """The cost of this run in Table 6."""
        return EXAFLOPS.get((self.model, self.epochs)) if self.row.data == "jft300m" else None

    def __call__(self, facts: Facts) -> Draft:
        """Return the run on data with these facts."""
        row, many = self.row, self.row.data != "imagenet1k"
        config = configure(
            self.model,
            image_size=224,
            num_classes=facts.classes,
            channels=facts.channels,
            head_bias=HEAD_BIAS if many else 0.0,
        )
        return Draft(
            model=config.for_pretraining(dropout=row.dropout),
            preprocessing=preset("google", image_size=(224, 224), channels=facts.channels),
            augmentation=Augmentation(),
            objective=ClassificationConfig(loss="sigmoid" if many else "softmax"),
            optimizer=OptimizerConfig(weight_decay=row.weight_decay, clip_norm=None if row.data == "jft300m" else 1.0),
            schedule=Schedule(
                shape="linear" if row.decay == "linear" else "cosine",
                peak=row.learning_rate,
                end=LINEAR_END if row.decay == "linear" else 0.0,
                warmup_steps=WARMUP_STEPS,
            ),
            batch=PRETRAINING_BATCH,
            steps=max(round(facts.images * self.epochs / PRETRAINING_BATCH), 1),
        )


def _recipes() -> dict[str, PretrainingRecipe]:
    recipes = {}
    for row in TABLE_3:
        for model in row.models:
            for epochs in row.epochs:
                name = f"{row.data}-{model}" + (f"-{epochs}ep" if len(row.epochs) > 1 else "")
                recipes[name] = PretrainingRecipe(name=name, model=model, epochs=epochs, row=row)
    return recipes


PRETRAINING = _recipes()
