"""The parameters of the 15 common corruptions, as published (Hendrycks and Dietterich, 2019).

They are for images of 224, 64 and 32 pixels: ImageNet-C, Tiny-ImageNet-C and CIFAR-10-C. Lengths are in pixels.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

CorruptionName = Literal[
    "gaussian-noise",
    "shot-noise",
    "impulse-noise",
    "defocus-blur",
    "glass-blur",
    "motion-blur",
    "zoom-blur",
    "snow",
    "frost",
    "fog",
    "brightness",
    "contrast",
    "elastic",
    "pixelate",
    "jpeg",
]
NAMES: tuple[CorruptionName, ...] = get_args(CorruptionName)
SEVERITIES = (1, 2, 3, 4, 5)
Number = int | float
Parameters = tuple[tuple[Number, ...], ...]
"""The arguments of a corruption at each severity."""


@dataclass(frozen=True, kw_only=True)
class Published:
    """The parameters that were published for one size of images."""

    name: str
    side: int
    """Height and width of those images, in pixels."""
    parameters: Mapping[CorruptionName, Parameters]


def _each(*values: Number) -> Parameters:
    return tuple((value,) for value in values)


IMAGENET = Published(
    name="ImageNet-C",
    side=224,
    parameters={
        "gaussian-noise": _each(0.08, 0.12, 0.18, 0.26, 0.38),
        "shot-noise": _each(60, 25, 12, 5, 3),
        "impulse-noise": _each(0.03, 0.06, 0.09, 0.17, 0.27),
        "defocus-blur": ((3, 0.1), (4, 0.5), (6, 0.5), (8, 0.5), (10, 0.5)),
        "glass-blur": ((0.7, 1, 2), (0.9, 2, 1), (1, 2, 3), (1.1, 3, 2), (1.5, 4, 2)),
        "motion-blur": ((10, 3), (15, 5), (15, 8), (15, 12), (20, 15)),
        "zoom-blur": ((1.11, 0.01), (1.16, 0.01), (1.21, 0.02), (1.26, 0.02), (1.31, 0.03)),
        "snow": (
            (0.1, 0.3, 3, 0.5, 10, 4, 0.8),
            (0.2, 0.3, 2, 0.5, 12, 4, 0.7),
            (0.55, 0.3, 4, 0.9, 12, 8, 0.7),
            (0.55, 0.3, 4.5, 0.85, 12, 8, 0.65),
            (0.55, 0.3, 2.5, 0.85, 12, 12, 0.55),
        ),
        "frost": ((1, 0.4), (0.8, 0.6), (0.7, 0.7), (0.65, 0.7), (0.6, 0.75)),
        "fog": ((1.5, 2), (2, 2), (2.5, 1.7), (2.5, 1.5), (3, 1.4)),
        "brightness": _each(0.1, 0.2, 0.3, 0.4, 0.5),
        "contrast": _each(0.4, 0.3, 0.2, 0.1, 0.05),
        "elastic": (
            (488, 170.8, 24.4),
            (488, 19.52, 48.8),
            (12.2, 2.44, 4.88),
            (17.08, 2.44, 4.88),
            (29.28, 2.44, 4.88),
        ),
        "pixelate": _each(0.6, 0.5, 0.4, 0.3, 0.25),
        "jpeg": _each(25, 18, 15, 10, 7),
    },
)
TINY_IMAGENET = Published(
    name="Tiny-ImageNet-C",
    side=64,
    parameters={
        "gaussian-noise": _each(0.04, 0.08, 0.12, 0.15, 0.18),
        "shot-noise": _each(250, 100, 50, 30, 15),
        "impulse-noise": _each(0.01, 0.02, 0.05, 0.08, 0.14),
        "defocus-blur": ((0.5, 0.6), (1, 0.1), (1.5, 0.1), (2.5, 0.01), (3, 0.1)),
        "glass-blur": ((0.1, 1, 1), (0.5, 1, 1), (0.6, 1, 2), (0.7, 2, 1), (0.9, 2, 2)),
        "motion-blur": ((10, 1), (10, 1.5), (10, 2), (10, 2.5), (12, 3)),
        "zoom-blur": ((1.06, 0.01), (1.11, 0.01), (1.16, 0.01), (1.21, 0.01), (1.26, 0.01)),
        "snow": (
            (0.1, 0.2, 1, 0.6, 8, 3, 0.8),
            (0.1, 0.2, 1, 0.5, 10, 4, 0.8),
            (0.15, 0.3, 1.75, 0.55, 10, 4, 0.7),
            (0.25, 0.3, 2.25, 0.6, 12, 6, 0.65),
            (0.3, 0.3, 1.25, 0.65, 14, 12, 0.6),
        ),
        "frost": ((1, 0.3), (0.9, 0.4), (0.8, 0.45), (0.75, 0.5), (0.7, 0.55)),
        "fog": ((0.4, 3), (0.7, 3), (1, 2.5), (1.5, 2), (2, 1.75)),
        "brightness": _each(0.1, 0.2, 0.3, 0.4, 0.5),
        "contrast": _each(0.4, 0.3, 0.2, 0.1, 0.05),
        "elastic": ((0, 0, 5.12), (3.2, 19.2, 3.84), (6.4, 5.12, 3.84), (6.4, 1.92, 1.92), (10.24, 1.92, 1.28)),
        "pixelate": _each(0.9, 0.8, 0.7, 0.6, 0.5),
        "jpeg": _each(65, 58, 50, 40, 25),
    },
)
CIFAR = Published(
    name="CIFAR-10-C",
    side=32,
    parameters={
        "gaussian-noise": _each(0.04, 0.06, 0.08, 0.09, 0.10),
        "shot-noise": _each(500, 250, 100, 75, 50),
        "impulse-noise": _each(0.01, 0.02, 0.03, 0.05, 0.07),
        "defocus-blur": ((0.3, 0.4), (0.4, 0.5), (0.5, 0.6), (1, 0.2), (1.5, 0.1)),
        "glass-blur": ((0.05, 1, 1), (0.25, 1, 1), (0.4, 1, 1), (0.25, 1, 2), (0.4, 1, 2)),
        "motion-blur": ((6, 1), (6, 1.5), (6, 2), (8, 2), (9, 2.5)),
        "zoom-blur": ((1.06, 0.01), (1.11, 0.01), (1.16, 0.01), (1.21, 0.01), (1.26, 0.01)),
        "snow": (
            (0.1, 0.2, 1, 0.6, 8, 3, 0.95),
            (0.1, 0.2, 1, 0.5, 10, 4, 0.9),
            (0.15, 0.3, 1.75, 0.55, 10, 4, 0.9),
            (0.25, 0.3, 2.25, 0.6, 12, 6, 0.85),
            (0.3, 0.3, 1.25, 0.65, 14, 12, 0.8),
        ),
        "frost": ((1, 0.2), (1, 0.3), (0.9, 0.4), (0.85, 0.4), (0.75, 0.45)),
        "fog": ((0.2, 3), (0.5, 3), (0.75, 2.5), (1, 2), (1.5, 1.75)),
        "brightness": _each(0.05, 0.1, 0.15, 0.2, 0.3),
        "contrast": _each(0.75, 0.5, 0.4, 0.3, 0.15),
        "elastic": ((0, 0, 2.56), (1.6, 6.4, 2.24), (2.56, 1.92, 1.92), (3.2, 1.28, 1.6), (3.2, 0.96, 0.96)),
        "pixelate": _each(0.95, 0.9, 0.85, 0.75, 0.65),
        "jpeg": _each(80, 65, 58, 50, 40),
    },
)
PUBLISHED = (IMAGENET, TINY_IMAGENET, CIFAR)


def published_for(image_size: tuple[int, int]) -> Published:
    """Return the parameters for the published size that is nearest, as a ratio, to the shorter side of images."""
    shorter = min(image_size)
    return min(PUBLISHED, key=lambda published: max(published.side / shorter, shorter / published.side))
