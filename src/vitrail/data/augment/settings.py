"""Augmentation as settings that a run stores."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from vitrail.base.errors import ConfigError, did_you_mean
from vitrail.data.augment.crop import ERASE_DRAWS, INCEPTION_DRAWS, PadMode, Range
from vitrail.data.augment.randaugment import LARGEST
from vitrail.data.preprocessing import Interpolation

CropMode = Literal["none", "inception", "pad"]
Draws = Sequence[float]
"""`Augmentation.draws` numbers in [0, 1), which decide everything that happens to one image."""

# Which of an image's draws decide what.
CROP = slice(0, INCEPTION_DRAWS)
FLIP = INCEPTION_DRAWS
JITTER = slice(FLIP + 1, FLIP + 9)
ERASING = JITTER.stop
ERASE = slice(ERASING + 1, ERASING + 1 + ERASE_DRAWS)
OPERATIONS = slice(ERASE.stop, None)
# Only where something of it is on, at the end: the draws of other runs are what they were before it was there.
JITTERING, GREYING, BLURRING, DEVIATION, SOLARIZING = range(-5, 0)


@dataclass(frozen=True, kw_only=True)
class Augmentation:
    """Random changes to training images, in the order of the fields; the defaults are the paper's."""

    crop: CropMode = "inception"
    """`inception` cuts a random box and resizes it; `pad` resizes, adds a border and shifts; `none` only resizes."""
    area: Range = (0.05, 1.0)
    """With `inception`: the share of the image that the box may cover."""
    aspect: Range = (3 / 4, 4 / 3)
    """With `inception`: width / height that the box may have."""
    pad: int = 4
    """With `pad`: pixels of the border, which is also how far the image may shift."""
    pad_mode: PadMode = "reflect"
    """With `pad`: what the border shows, the mirrored image or black."""
    flip: float = 0.5
    """Probability of mirroring left and right."""
    brightness: float = 0.0
    """Jitter: the factor is drawn from 1 - brightness to 1 + brightness."""
    contrast: float = 0.0
    """Jitter: likewise."""
    saturation: float = 0.0
    """Jitter: likewise; only red, green and blue have it."""
    hue: float = 0.0
    """Jitter: turns of the colour circle, drawn from -hue to hue; at most 0.5."""
    jitter: float = 1.0
    """Probability of the jitter."""
    grey: float = 0.0
    """Probability of taking away the colours; only red, green and blue have some."""
    blur: float = 0.0
    """Probability of a Gaussian blur."""
    blur_deviation: Range = (0.1, 2.0)
    """What the deviation of the blur is drawn from, in pixels."""
    solarize: float = 0.0
    """Probability of inverting all values from 128 on."""
    layers: int = 0
    """RandAugment: operations for each image; 0 is off."""
    magnitude: float = 0.0
    """RandAugment: strength of all operations, from 0 to 10."""
    erase: float = 0.0
    """Probability of filling a box with noise."""
    erase_area: Range = (0.02, 0.33)
    """The share of the image that the noise may cover."""
    mixup: float = 0.0
    """Blend pairs of images, with shares drawn from Beta(mixup, mixup); 0 is off."""
    cutmix: float = 0.0
    """Paste a box of each other into pairs of images, its share drawn from Beta(cutmix, cutmix); 0 is off."""
    mix_probability: float = 1.0
    """Share of the pairs that are mixed at all; with mixup and cutmix both on, half of them by each."""
    interpolation: Interpolation = "bilinear"
    """How values between pixels are computed."""
    antialias: bool = False
    """Whether shrinking averages over all the pixels that it covers."""

    def __post_init__(self) -> None:
        """Refuse what no image can go through."""
        for name, kinds in (("crop", CropMode), ("pad_mode", PadMode), ("interpolation", Interpolation)):
            value, choices = getattr(self, name), get_args(kinds)
            if value not in choices:
                raise ConfigError(
                    f"{name} is {value!r}, but must be one of {', '.join(choices)}.{did_you_mean(value, choices)}"
                )
        for name in ("area", "erase_area", "aspect", "blur_deviation"):
            low, high = getattr(self, name)
            most = 1.0 if name.endswith("area") else math.inf
            if not 0 < low <= high <= most or math.isinf(high):
                raise ConfigError(
                    f"{name} is {(low, high)!r}, but must rise from above 0{' to at most 1' if most == 1 else ''}."
                )
        for name in (
            *("flip", "erase", "mix_probability", "brightness", "contrast", "saturation"),
            *("jitter", "grey", "blur", "solarize"),
        ):
            if not 0 <= getattr(self, name) <= 1:
                raise ConfigError(f"{name} is {getattr(self, name)!r}, but must be from 0 to 1.")
        if not 0 <= self.hue <= 0.5:
            raise ConfigError(f"hue is {self.hue!r} turns, but must be from 0 to 0.5.")
        if not 0 <= self.magnitude <= LARGEST:
            raise ConfigError(f"magnitude is {self.magnitude!r}, but must be from 0 to {LARGEST:g}.")
        for name in ("pad", "layers"):
            if not 0 <= getattr(self, name) < math.inf:
                raise ConfigError(f"{name} is {getattr(self, name)!r}, but must be a number from 0 on.")
        for name in ("mixup", "cutmix"):  # beyond, the shares are no longer numbers
            if getattr(self, name) != 0 and not 1e-6 <= getattr(self, name) <= 100:
                raise ConfigError(f"{name} is {getattr(self, name)!r}, but must be 0 or from 1e-06 to 100.")

    @property
    def draws(self) -> int:
        """Count the numbers in [0, 1) that one image needs."""
        return ERASE.stop + 2 * self.layers + (-JITTERING if self.varies else 0)

    @property
    def jitters(self) -> bool:
        """Return whether colours are changed."""
        return max(self.brightness, self.contrast, self.saturation, self.hue) > 0

    @property
    def recolours(self) -> bool:
        """Return whether anything comes after crop, resize and flip."""
        return self.jitters or self.varies or self.layers > 0 or self.erase > 0

    @property
    def varies(self) -> bool:
        """Return whether anything that makes views differ is on: a chance of jitter, grey, blur, solarizing."""
        return (self.jitters and self.jitter < 1) or max(self.grey, self.blur, self.solarize) > 0

    @property
    def mixes(self) -> bool:
        """Return whether images are mixed with each other."""
        return (self.mixup > 0 or self.cutmix > 0) and self.mix_probability > 0


NO_AUGMENTATION = Augmentation(crop="none", flip=0.0)
