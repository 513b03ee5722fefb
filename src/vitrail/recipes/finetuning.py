"""Every row of Table 4 as a recipe: `vitrail finetune DATA --from MODEL --recipe finetune-pets`.

SGD with momentum 0.9, cosine, batch 512, no weight decay, gradients clipped at a global norm of 1, 384 px; learning
rates are tried on a part of the training images, and the best trains on all of them (App. B.1.1). Warm-up as in the
reference release: 500 steps, or 100 of 500. Table 2's ImageNet results have 512 px and Polyak averaging.
"""

from dataclasses import dataclass

from vitrail.data.augment.settings import Augmentation
from vitrail.model.build import configure
from vitrail.model.cost import cost
from vitrail.recipes.paper import FINETUNING_BATCH, FINETUNING_SIZE, TABLE_4, Finetuning
from vitrail.recipes.results import TABLE_5
from vitrail.runs.adapt import Adaptation
from vitrail.runs.plan import FLOPS_PER_MAC

POLYAK = 0.9999
POLYAK_SIZE = 512
COSTED = "B/16"
"""The model whose cost and result a recipe shows."""


@dataclass(frozen=True, kw_only=True)
class FinetuningRecipe:
    """A run of Table 4."""

    name: str
    row: Finetuning
    side: int = FINETUNING_SIZE
    averaging: float | None = None

    @property
    def exaflops(self) -> float:
        """The arithmetic of one training of a B/16, without the sweep."""
        need = cost(configure(COSTED, image_size=self.side, num_classes=self.row.num_classes))
        return FLOPS_PER_MAC * need.macs * self.row.steps * FINETUNING_BATCH / 1e18

    @property
    def published(self) -> str:
        """Table 5's result for a B/16 that was pre-trained on ImageNet-21k; empty if it has none."""
        accuracy = TABLE_5["imagenet21k"].get(self.row.result or "", {}).get(COSTED)
        return "" if accuracy is None or self.averaging else f"{accuracy:.2f}% with {COSTED} from ImageNet-21k"

    @property
    def about(self) -> str:
        """What it is for."""
        rates = ", ".join(f"{rate:g}" for rate in self.row.rates)
        return f"{self.row.title}, {self.side} px, {self.row.steps:,} steps, rates {rates}; Table 4"

    def adaptation(self) -> Adaptation:
        """Return the run's values."""
        return Adaptation(
            steps=self.row.steps,
            batch=FINETUNING_BATCH,
            rates=self.row.rates,
            warmup_steps=100 if self.row.steps <= 500 else 500,
            dev_fraction=self.row.dev_fraction,
            image_size=(self.side, self.side),
            averaging=self.averaging,
            augmentation=Augmentation(),
        )


def _recipes() -> dict[str, FinetuningRecipe]:
    recipes = {row.name: FinetuningRecipe(name=row.name, row=row) for row in TABLE_4}
    polyak = "finetune-imagenet-polyak"
    recipes[polyak] = FinetuningRecipe(
        name=polyak, row=recipes["finetune-imagenet"].row, side=POLYAK_SIZE, averaging=POLYAK
    )
    return recipes


FINETUNING = _recipes()
