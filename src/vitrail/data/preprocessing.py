"""How pixels become a model's input: the settings that travel with the weights."""

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal, get_args

from vitrail.base.errors import ConfigError, did_you_mean
from vitrail.base.limits import INPUT_PIXELS

if TYPE_CHECKING:
    from vitrail.base.shapes import Images
    from vitrail.data.pictures import Picture
else:  # these settings are read without torch too
    Images = Picture = Any

Geometry = Literal["square", "crop"]
Interpolation = Literal["nearest", "bilinear", "bicubic", "lanczos"]
PresetName = Literal["google", "timm", "huggingface", "torchvision", "swag", "imagenet", "clip"]

HALF = (0.5, 0.5, 0.5)
IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)
CLIP_MEAN = (0.48145466, 0.4578275, 0.40821073)
CLIP_STD = (0.26862954, 0.26130258, 0.27577711)


@dataclass(frozen=True, kw_only=True)
class Preprocessing:
    """From an image of any size to a model's input; (pixel / 255 - mean) / std comes last."""

    image_size: tuple[int, int] = (224, 224)
    """Height and width of the result, in pixels."""
    geometry: Geometry = "square"
    """`square` resizes both sides, whatever the proportions; `crop` resizes the short side and cuts out the centre."""
    crop_fraction: float = 1.0
    """The share of the resized side, with `crop` of the short one, that is kept; the centre is cut out."""
    interpolation: Interpolation = "bilinear"
    """How values between pixels are computed."""
    antialias: bool = False
    """Whether shrinking averages over all the pixels that it covers, as Pillow does."""
    mean: tuple[float, ...] = HALF
    """Mean of each channel, for pixels from 0 to 1."""
    std: tuple[float, ...] = HALF
    """Deviation of each channel, for pixels from 0 to 1."""

    def __post_init__(self) -> None:
        """Refuse what no image can go through."""
        for name, value, choices in (
            ("geometry", self.geometry, get_args(Geometry)),
            ("interpolation", self.interpolation, get_args(Interpolation)),
        ):
            if value not in choices:
                raise ConfigError(
                    f"{name} is {value!r}, but must be one of {', '.join(choices)}.{did_you_mean(value, choices)}"
                )
        if len(self.image_size) != 2 or min(self.image_size) < 1:
            raise ConfigError(f"image_size is {self.image_size!r}, but must be (height, width) of at least 1 pixel.")
        INPUT_PIXELS.check(self.image_size[0] * self.image_size[1], f"image_size {self.image_size}", ConfigError)
        if not 0 < self.crop_fraction <= 1:
            raise ConfigError(f"crop_fraction is {self.crop_fraction!r}, but must be above 0 and at most 1.")
        if len(self.mean) != len(self.std) or not self.mean:
            raise ConfigError(
                f"mean has {len(self.mean)} channels and std has {len(self.std)}; give one of each for every channel."
            )
        if not all(math.isfinite(value) for value in self.mean + self.std) or min(self.std) <= 0:
            raise ConfigError(f"mean {self.mean} must be finite and std {self.std} above 0 in every channel.")

    def __call__(self, images: Picture | list[Any] | tuple[Any, ...]) -> Images:
        """Return the input of a model for one image, as a batch of one, or for a list of images.

        An image is a path, the bytes of a file, a Pillow image, or an array or tensor of uint8 with the channels last
        or first. The first one that cannot be read raises an `ImageError` with its name.
        """
        from vitrail.data.transforms import prepare  # which reads these settings

        return prepare(images if isinstance(images, list | tuple) else [images], self)

    @property
    def channels(self) -> int:
        """Channels of the images that this is for."""
        return len(self.mean)

    @property
    def canvas(self) -> tuple[int, int]:
        """The smallest image of which the centre is cut out; one of this size is not resized."""
        high, wide = (math.floor(side / self.crop_fraction + 1e-6) for side in self.image_size)
        return high, wide

    def resized(self, height: int, width: int) -> tuple[int, int]:
        """Return the size of an image before the centre is cut out: with `crop` it keeps its proportions.

        It is nowhere smaller than what is cut out. For square sizes the long side is rounded down, as torchvision
        does; for others both are rounded, as timm does.
        """
        high, wide = self.canvas
        if self.geometry == "square":
            return high, wide
        if high == wide:
            short = min(height, width)
            return high * height // short, wide * width // short
        if height * wide <= width * high:  # in whole numbers: a fraction would decide ties by its last bit
            return high, round(Fraction(width * high, height))
        return round(Fraction(height * wide, width)), wide

    def corner(self, resized: tuple[int, int]) -> tuple[int, int]:
        """Return the top and the left of the crop in a resized image; halves are rounded to even, as in torchvision."""
        return round((resized[0] - self.image_size[0]) / 2), round((resized[1] - self.image_size[1]) / 2)

    def window(self, height: int, width: int) -> tuple[float, float, float, float]:
        """Return the part of an image that becomes the input: top, left, height and width, as shares of the image."""
        if self.geometry == "square":
            return 0.0, 0.0, 1.0, 1.0
        resized = self.resized(height, width)
        top, left = self.corner(resized)
        high, wide = self.image_size
        return top / resized[0], left / resized[1], high / resized[0], wide / resized[1]


# Each library's default for an image of 224x224; swag are torchvision's weights of that name,
# imagenet is what DeiT, DINO, DINOv2, MAE and most of Meta's programs do.
PRESETS: dict[PresetName, Preprocessing] = {
    "google": Preprocessing(),
    "timm": Preprocessing(geometry="crop", crop_fraction=0.9, interpolation="bicubic", antialias=True),
    "huggingface": Preprocessing(antialias=True),
    "torchvision": Preprocessing(
        geometry="crop", crop_fraction=224 / 256, antialias=True, mean=IMAGENET_MEAN, std=IMAGENET_STD
    ),
    "swag": Preprocessing(
        geometry="crop", interpolation="bicubic", antialias=True, mean=IMAGENET_MEAN, std=IMAGENET_STD
    ),
    "imagenet": Preprocessing(
        geometry="crop",
        crop_fraction=224 / 256,
        interpolation="bicubic",
        antialias=True,
        mean=IMAGENET_MEAN,
        std=IMAGENET_STD,
    ),
    "clip": Preprocessing(geometry="crop", interpolation="bicubic", antialias=True, mean=CLIP_MEAN, std=CLIP_STD),
}


def preset(name: PresetName, *, image_size: tuple[int, int] = (224, 224), channels: int = 3) -> Preprocessing:
    """Return a library's preprocessing for one image size.

    timm keeps nine tenths of the short side, and everything from 384 pixels on. Channels that are not three all get
    a mean and deviation of 0.5, since ImageNet's are for red, green and blue.
    """
    if name not in PRESETS:
        raise ConfigError(f"there is no preprocessing {name!r}; choose one of {', '.join(PRESETS)}.")
    chosen = replace(PRESETS[name], image_size=image_size)
    if name == "timm" and min(image_size) >= 384:
        chosen = replace(chosen, crop_fraction=1.0)
    if channels != 3:
        chosen = replace(chosen, mean=(0.5,) * channels, std=(0.5,) * channels)
    return chosen
