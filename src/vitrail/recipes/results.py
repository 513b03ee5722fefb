"""What the paper reports after transfer, as data: Tables 5, 6 and 9."""

from typing import NamedTuple

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


class ScalingRow(NamedTuple):
    """A row of Table 6."""

    family: str
    model: str
    epochs: int
    exaflops: float
    """Of pre-training on JFT-300M."""
    imagenet: float
    """Top-1 after fine-tuning, in percent."""


TABLE_6 = (
    ScalingRow("ViT", "B/32", 7, 55, 80.73),
    ScalingRow("ViT", "B/16", 7, 224, 84.15),
    ScalingRow("ViT", "L/32", 7, 196, 84.37),
    ScalingRow("ViT", "L/16", 7, 783, 86.30),
    ScalingRow("ViT", "L/16", 14, 1567, 87.12),
    ScalingRow("ViT", "H/14", 14, 4262, 88.08),
    ScalingRow("ResNet", "R50x1", 7, 50, 77.54),
    ScalingRow("ResNet", "R50x2", 7, 199, 82.12),
    ScalingRow("ResNet", "R101x1", 7, 96, 80.67),
    ScalingRow("ResNet", "R152x1", 7, 141, 81.88),
    ScalingRow("ResNet", "R152x2", 7, 563, 84.97),
    ScalingRow("ResNet", "R152x2", 14, 1126, 85.56),
    ScalingRow("ResNet", "R200x3", 14, 3306, 87.22),
    ScalingRow("hybrid", "R50+B/32", 7, 106, 84.90),
    ScalingRow("hybrid", "R50+B/16", 7, 274, 85.58),
    ScalingRow("hybrid", "R50+L/32", 7, 246, 85.68),
    ScalingRow("hybrid", "R50+L/16", 7, 859, 86.60),
    ScalingRow("hybrid", "R50+L/16", 14, 1668, 87.12),
)
"""Pre-training on JFT-300M: compute and result."""

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
