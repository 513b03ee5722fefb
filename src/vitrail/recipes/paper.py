"""The paper's runs and what they cost, as data: Tables 2, 3, 4, 6 and 9."""

from dataclasses import dataclass

from vitrail.base.errors import ConfigError


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

_MODELS_5 = ("B/16", "B/32", "L/16", "L/32", "H/14")


def _row(*results: float | None) -> dict[str, float]:
    return {model: result for model, result in zip(_MODELS_5, results, strict=True) if result is not None}


TABLE_5 = {
    "imagenet1k": {
        "cifar10": _row(98.13, 97.77, 97.86, 97.94, None),
        "cifar100": _row(87.13, 86.31, 86.35, 87.07, None),
        "imagenet": _row(77.91, 73.38, 76.53, 71.16, None),
        "real": _row(83.57, 79.56, 82.19, 77.83, None),
        "flowers": _row(89.49, 85.43, 89.66, 86.36, None),
        "pets": _row(93.81, 92.04, 93.64, 91.35, None),
    },
    "imagenet21k": {
        "cifar10": _row(98.95, 98.79, 99.16, 99.13, 99.27),
        "cifar100": _row(91.67, 91.97, 93.44, 93.04, 93.82),
        "imagenet": _row(83.97, 81.28, 85.15, 80.99, 85.13),
        "real": _row(88.35, 86.63, 88.40, 85.65, 88.70),
        "flowers": _row(99.38, 99.11, 99.61, 99.19, 99.51),
        "pets": _row(94.43, 93.02, 94.73, 93.09, 94.82),
    },
    "jft300m": {
        "cifar10": _row(99.00, 98.61, 99.38, 99.19, 99.50),
        "cifar100": _row(91.87, 90.49, 94.04, 92.52, 94.55),
        "imagenet": _row(84.15, 80.73, 87.12, 84.37, 88.04),
        "real": _row(88.85, 86.27, 89.99, 88.28, 90.33),
        "flowers": _row(99.56, 99.27, 99.56, 99.45, 99.68),
        "pets": _row(95.80, 93.40, 97.11, 95.83, 97.56),
    },
}
"""Top-1 after fine-tuning at 384 px, in percent, by pre-training data, task and model."""

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

VTAB_GROUPS: dict[str, tuple[str, ...]] = {
    "natural": ("caltech101", "cifar", "dtd", "oxford_flowers102", "oxford_iiit_pet", "sun397", "svhn"),
    "specialized": ("patch_camelyon", "eurosat", "resisc45", "diabetic_retinopathy"),
    "structured": (
        "clevr_count",
        "clevr_dist",
        "dmlab",
        "dsprites_loc",
        "dsprites_ori",
        "kitti",
        "smallnorb_azi",
        "smallnorb_ele",
    ),
}
"""The 19 tasks of VTAB-1k in the order of Table 9, by the usual names of their folders."""


def _table_9(natural: str, specialized: str, structured: str) -> dict[str, float]:
    accuracies = map(float, f"{natural} {specialized} {structured}".split())
    return dict(zip((task for tasks in VTAB_GROUPS.values() for task in tasks), accuracies, strict=True))


TABLE_9: dict[str, dict[str, float]] = {
    "H/14 JFT": _table_9(
        "95.3 85.5 75.2 99.7 97.2 65.0 88.9", "83.3 96.7 91.4 76.6", "91.7 63.8 53.1 79.4 63.3 84.5 33.2 51.2"
    ),
    "L/16 JFT": _table_9(
        "95.4 81.9 74.3 99.7 96.7 63.5 87.4", "83.6 96.5 89.7 77.1", "86.4 63.1 49.7 74.5 60.5 82.2 36.2 51.1"
    ),
    "L/16 I21k": _table_9(
        "90.8 84.1 74.1 99.3 92.7 61.0 80.9", "82.5 95.6 85.2 75.3", "70.3 56.1 41.9 74.7 64.9 79.9 30.5 41.7"
    ),
}
"""Accuracy on VTAB-1k in percent, by model and its pre-training data, and by task."""


def pretraining_epochs(model: str, data: str) -> int:
    """Return how long the paper pre-trains a model on a data set: the longest of its runs."""
    lengths = [epochs for row in TABLE_3 if model in row.models and row.data == data for epochs in row.epochs]
    lengths += [epochs for name, epochs in EXAFLOPS if name == model and data == "jft300m"]
    if not lengths:
        known = sorted({name for row in TABLE_3 if row.data == data for name in row.models})
        raise ConfigError(
            f"the paper does not pre-train {model} on {DATASETS[data].title}, only {', '.join(known)}; "
            "say for how long with --epochs."
        )
    return max(lengths)
