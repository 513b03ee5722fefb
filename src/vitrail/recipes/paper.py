"""The paper's runs and what they cost, as data: Tables 2, 3, 4 and 6."""

from dataclasses import dataclass
from typing import Literal

from vitrail.base.errors import ConfigError

Preset = Literal[
    "jft300m",
    "imagenet21k",
    "imagenet1k",
    "finetune-imagenet",
    "finetune-cifar10",
    "finetune-cifar100",
    "finetune-pets",
    "finetune-flowers",
    "finetune-vtab",
]
"""The paper's runs: pre-training by its data (Table 3), fine-tuning by its row of Table 4."""


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """A data set that the paper trains on."""

    title: str
    images: int
    num_classes: int


DATASETS = {
    "jft300m": Dataset(title="JFT-300M", images=303_000_000, num_classes=18_291),
    "imagenet21k": Dataset(title="ImageNet-21k", images=14_197_122, num_classes=21_843),
    "imagenet1k": Dataset(title="ImageNet-1k", images=1_281_167, num_classes=1_000),
}


@dataclass(frozen=True, kw_only=True)
class Pretraining:
    """A row of Table 3: batch 4096, Adam, 224 px, 10,000 steps of warm-up."""

    models: tuple[str, ...]
    data: str
    epochs: tuple[int, ...]
    learning_rate: float
    decay: str
    weight_decay: float
    dropout: float


_EVERY_VIT = ("B/16", "B/32", "L/16", "L/32", "H/14")


def _jft(models: tuple[str, ...], epochs: tuple[int, ...], learning_rate: float) -> Pretraining:
    return Pretraining(
        models=models,
        data="jft300m",
        epochs=epochs,
        learning_rate=learning_rate,
        decay="linear",
        weight_decay=0.1,
        dropout=0.0,
    )


def _imagenet21k(models: tuple[str, ...], epochs: tuple[int, ...]) -> Pretraining:
    return Pretraining(
        models=models,
        data="imagenet21k",
        epochs=epochs,
        learning_rate=1e-3,
        decay="linear",
        weight_decay=0.03,
        dropout=0.1,
    )


TABLE_3 = (
    _jft(("B/16", "B/32"), (7,), 8e-4),
    _jft(("L/32",), (7,), 6e-4),
    _jft(("L/16",), (7, 14), 4e-4),
    _jft(("H/14",), (14,), 3e-4),
    _jft(("R50x1", "R50x2"), (7,), 1e-3),
    _jft(("R101x1",), (7,), 8e-4),
    _jft(("R152x1", "R152x2"), (7,), 6e-4),
    _jft(("R50+B/16", "R50+B/32"), (7,), 8e-4),
    _jft(("R50+L/32",), (7,), 2e-4),
    _jft(("R50+L/16",), (7, 14), 4e-4),
    _imagenet21k(("B/16", "B/32"), (90,)),
    _imagenet21k(("L/16", "L/32"), (30, 90)),
    Pretraining(
        models=_EVERY_VIT,
        data="imagenet1k",
        epochs=(300,),
        learning_rate=3e-3,
        decay="cosine",
        weight_decay=0.3,
        dropout=0.1,
    ),
)

PRETRAINING_BATCH = 4096
FINETUNING_BATCH = 512
FINETUNING_SIZE = 384


@dataclass(frozen=True, kw_only=True)
class Finetuning:
    """A row of Table 4, and the share of its training images that choose the rate (App. B.1.1)."""

    name: str
    title: str
    steps: int
    rates: tuple[float, ...]
    dev_fraction: float
    num_classes: int
    result: str | None
    """Its column in Table 5."""


_RATES = (0.001, 0.003, 0.01, 0.03)
_IMAGENET_RATES = (0.003, 0.01, 0.03, 0.06)


def _finetuning(
    name: str, title: str, steps: int, rates: tuple[float, ...], dev: float, classes: int, result: str | None
) -> Finetuning:
    return Finetuning(
        name=name, title=title, steps=steps, rates=rates, dev_fraction=dev, num_classes=classes, result=result
    )


TABLE_4 = (
    _finetuning("finetune-imagenet", "ImageNet-1k", 20_000, _IMAGENET_RATES, 0.01, 1000, "imagenet"),
    _finetuning("finetune-cifar10", "CIFAR-10", 10_000, _RATES, 0.02, 10, "cifar10"),
    _finetuning("finetune-cifar100", "CIFAR-100", 10_000, _RATES, 0.02, 100, "cifar100"),
    _finetuning("finetune-pets", "Oxford-IIIT Pets", 500, _RATES, 0.1, 37, "pets"),
    _finetuning("finetune-flowers", "Oxford Flowers-102", 500, _RATES, 0.1, 102, "flowers"),
    _finetuning("finetune-vtab", "a task of VTAB-1k", 2_500, (0.01,), 0.2, 100, None),
)
"""Fine-tuning: SGD with momentum, batch 512, 384 px."""

FINETUNING_STEPS = {row.name: row.steps for row in TABLE_4}

EXAFLOPS: dict[tuple[str, int], float] = {
    ("B/32", 7): 55.0,
    ("B/16", 7): 224.0,
    ("L/32", 7): 196.0,
    ("L/16", 7): 783.0,
    ("L/16", 14): 1567.0,
    ("H/14", 14): 4262.0,
    ("R50x1", 7): 50.0,
    ("R50x2", 7): 199.0,
    ("R101x1", 7): 96.0,
    ("R152x1", 7): 141.0,
    ("R152x2", 7): 563.0,
    ("R152x2", 14): 1126.0,
    ("R200x3", 14): 3306.0,
    ("R50+B/32", 7): 106.0,
    ("R50+B/16", 7): 274.0,
    ("R50+L/32", 7): 246.0,
    ("R50+L/16", 7): 859.0,
    ("R50+L/16", 14): 1668.0,
}
"""Table 6: pre-training on JFT-300M, by model and epochs."""

SCRATCH_RESULTS: dict[tuple[str, str, int], str] = {
    ("B/32", "imagenet1k", 300): "69.19% top-1 at 224 px",
    ("B/16", "imagenet1k", 300): "74.79% top-1 at 224 px",
    ("L/32", "imagenet1k", 300): "66.90% top-1 at 224 px",
    ("L/16", "imagenet1k", 300): "72.59% top-1 at 224 px",
    ("B/16", "imagenet21k", 90): "47.88% precision@1",
    ("B/32", "imagenet21k", 90): "44.04% precision@1",
    ("L/16", "imagenet21k", 90): "49.90% precision@1",
    ("L/32", "imagenet21k", 90): "45.42% precision@1",
    ("B/32", "jft300m", 7): "80.73% ImageNet after transfer",
    ("B/16", "jft300m", 7): "84.15% ImageNet after transfer",
    ("L/32", "jft300m", 7): "84.37% ImageNet after transfer",
    ("L/16", "jft300m", 7): "86.30% ImageNet after transfer",
    ("L/16", "jft300m", 14): "87.12% ImageNet after transfer",
    ("H/14", "jft300m", 14): "88.08% ImageNet after transfer",
    ("R50x1", "jft300m", 7): "77.54% ImageNet after transfer",
    ("R50x2", "jft300m", 7): "82.12% ImageNet after transfer",
    ("R101x1", "jft300m", 7): "80.67% ImageNet after transfer",
    ("R152x1", "jft300m", 7): "81.88% ImageNet after transfer",
    ("R152x2", "jft300m", 7): "84.97% ImageNet after transfer",
    ("R50+B/32", "jft300m", 7): "84.90% ImageNet after transfer",
    ("R50+B/16", "jft300m", 7): "85.58% ImageNet after transfer",
    ("R50+L/32", "jft300m", 7): "85.68% ImageNet after transfer",
    ("R50+L/16", "jft300m", 7): "86.60% ImageNet after transfer",
    ("R50+L/16", "jft300m", 14): "87.12% ImageNet after transfer",
}
"""What the paper and its authors report of pre-training, by model, data and epochs: Table 6, and the release."""

CORE_DAYS: dict[tuple[str, str], float] = {
    ("H/14", "jft300m"): 2_500.0,
    ("L/16", "jft300m"): 680.0,
    ("L/16", "imagenet21k"): 230.0,
}
"""Table 2: TPUv3-core-days of pre-training, by model and data."""


def pretraining_epochs(model: str, data: str) -> int:
    """Return how long the paper pre-trains a model on a data set: the longest of its runs."""
    lengths = [epochs for row in TABLE_3 if model in row.models and row.data == data for epochs in row.epochs]
    lengths += [epochs for name, epochs in EXAFLOPS if name == model and data == "jft300m"]
    if not lengths:
        models = sorted({name for row in TABLE_3 if row.data == data for name in row.models})
        raise ConfigError(
            f"the paper does not pre-train {model} on {DATASETS[data].title}, only {', '.join(models)}; give `epochs`."
        )
    return max(lengths)
