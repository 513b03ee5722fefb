"""`preprocessor_config.json`: how transformers' image processors bring images to a model, read and written."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from vitrail.checkpoint.formats.folder import numbers, setting
from vitrail.checkpoint.infer import ask_pixels
from vitrail.data.preprocessing import (
    CLIP_MEAN,
    CLIP_STD,
    HALF,
    IMAGENET_MEAN,
    IMAGENET_STD,
    PRESETS,
    Interpolation,
    Preprocessing,
)
from vitrail.model.patches import Size

_RESAMPLE: dict[int, Interpolation] = {0: "nearest", 1: "lanczos", 2: "bilinear", 3: "bicubic"}
_RESCALE = 1 / 255


@dataclass(frozen=True, kw_only=True)
class Processor:
    """What an image processor does where it has no settings."""

    size: int
    shortest: bool = False
    """Whether one number is the shortest edge, and not both sides."""
    crop: int | None = None
    """The side of what it cuts out of the centre; None does not."""
    resample: int = 3
    mean: tuple[float, ...] = IMAGENET_MEAN
    std: tuple[float, ...] = IMAGENET_STD


# By the beginning of a processor's name.
PROCESSORS = {
    "ViT": Processor(size=224, resample=2, mean=HALF, std=HALF),
    "DeiT": Processor(size=256, crop=224, mean=HALF, std=HALF),
    "CLIP": Processor(size=224, shortest=True, crop=224, mean=CLIP_MEAN, std=CLIP_STD),
    "Bit": Processor(size=224, shortest=True, crop=224, mean=CLIP_MEAN, std=CLIP_STD),
    "Siglip": Processor(size=224, mean=HALF, std=HALF),
    "DINOv3ViT": Processor(size=224, resample=2),
}
_SQUARE = Preprocessing(antialias=True, mean=IMAGENET_MEAN, std=IMAGENET_STD)
# What the published files of a type all do, for images of the model's own size.
PUBLISHED = {
    "deit": replace(_SQUARE, crop_fraction=224 / 256, interpolation="bicubic"),
    "vit_mae": _SQUARE,
    "dinov2": PRESETS["imagenet"],
    "dinov2_with_registers": PRESETS["imagenet"],
    "dinov3_vit": _SQUARE,
    "clip": PRESETS["clip"],
    "siglip": Preprocessing(interpolation="bicubic", antialias=True),
}


def read_pixels(
    stated: Mapping[str, Any], kind: str, image_size: Size, channels: int, origin: str
) -> tuple[Preprocessing | None, str | None]:
    """Return how images become input, or the sentence that asks for it."""
    settings = dict(stated)
    if not settings:
        known = PUBLISHED.get(kind) if channels == 3 else None
        why = f"no preprocessor_config.json lies beside a model of the type {kind!r}"
        return (None, ask_pixels(origin, why)) if known is None else (replace(known, image_size=image_size), None)
    name = str(settings.get("image_processor_type") or settings.get("feature_extractor_type") or "ViT")
    processor = next((value for start, value in PROCESSORS.items() if name.startswith(start)), None)
    if processor is None:
        return None, ask_pixels(origin, f"its image processor {name!r} is not known here")
    resized, result, shortest = _sizes(settings, processor)
    if result is None or not setting(settings, "do_resize", bool, True):
        return None, ask_pixels(origin, "its image processor gives images of their own sizes")
    fraction = min(side / whole for side, whole in zip(result, resized or result, strict=True))
    mean, std = numbers(settings, "image_mean", processor.mean), numbers(settings, "image_std", processor.std)
    if not setting(settings, "do_normalize", bool, True):
        mean, std = (0.0,) * len(mean), (1.0,) * len(std)
    factor = (
        setting(settings, "rescale_factor", float, _RESCALE) if setting(settings, "do_rescale", bool, True) else 1.0
    )
    range_ = 1.0 if factor == _RESCALE else 1 / (255 * factor)  # of the pixels that mean and deviation are for
    pixels = Preprocessing(
        image_size=result,
        geometry="crop" if shortest else "square",
        crop_fraction=min(fraction, 1.0),
        interpolation=_RESAMPLE.get(setting(settings, "resample", int, processor.resample), "bilinear"),
        antialias=True,
        mean=tuple(value * range_ for value in mean),
        std=tuple(value * range_ for value in std),
    )
    return pixels, None


def _sizes(settings: dict[str, Any], processor: Processor) -> tuple[Size | None, Size | None, bool]:
    """Return the size after resizing, the size of the result, and whether resizing keeps the proportions."""
    size, shortest = settings.get("size", processor.size), processor.shortest
    if isinstance(size, Mapping):
        shortest = "shortest_edge" in size
        size = (size.get("shortest_edge"),) * 2 if shortest else (size.get("height"), size.get("width"))
    crop = settings.get("crop_size", processor.crop)
    crop = (crop.get("height"), crop.get("width")) if isinstance(crop, Mapping) else crop
    resized = _whole(size)
    cropped = setting(settings, "do_center_crop", bool, processor.crop is not None)
    return resized, _whole(crop) if cropped else None if shortest else resized, shortest


def _whole(size: Any) -> Size | None:
    sides = size if isinstance(size, tuple | list) else (size, size)
    good = len(sides) == 2 and all(type(side) is int and side > 0 for side in sides)
    return (sides[0], sides[1]) if good else None


def write_pixels(pixels: Preprocessing) -> dict[str, Any]:
    """Write the settings; Pillow, which processors run on, always averages when it shrinks."""
    height, width = pixels.image_size
    whole = [round(side / pixels.crop_fraction) for side in pixels.image_size]
    cropped = pixels.geometry == "crop" or pixels.crop_fraction < 1
    settings: dict[str, Any] = {
        "image_processor_type": "ViTImageProcessor",
        "do_resize": True,
        "size": {"height": whole[0], "width": whole[1]},
        "resample": next(number for number, name in _RESAMPLE.items() if name == pixels.interpolation),
        "do_rescale": True,
        "rescale_factor": _RESCALE,
        "do_normalize": True,
        "image_mean": list(pixels.mean),
        "image_std": list(pixels.std),
    }
    if not cropped:
        return settings
    crop = {"do_center_crop": True, "crop_size": {"height": height, "width": width}}
    if pixels.geometry == "crop":
        return settings | crop | {"image_processor_type": "CLIPImageProcessor", "size": {"shortest_edge": min(whole)}}
    return settings | crop | {"image_processor_type": "DeiTImageProcessor"}
