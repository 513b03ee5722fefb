"""How the published weights of torchvision prepare images, which no tensor shows."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from vitrail.base.errors import CheckpointError, did_you_mean
from vitrail.checkpoint.infer import ask_pixels
from vitrail.data.preprocessing import Interpolation, Preprocessing, preset
from vitrail.model.config import ViTConfig


class Way(NamedTuple):
    """One file of weights: the side of its images, and the side that they are resized to before the crop."""

    size: int
    resized: int
    bicubic: bool


_SMALL, _LINEAR = Way(224, 256, bicubic=False), Way(224, 224, bicubic=True)
# Name, width and patch -> weights, by their names in torchvision.
PUBLISHED: dict[tuple[str, int, int], dict[str, Way]] = {
    ("vit_b_16", 768, 16): {
        "IMAGENET1K_V1": _SMALL,
        "IMAGENET1K_SWAG_E2E_V1": Way(384, 384, bicubic=True),
        "IMAGENET1K_SWAG_LINEAR_V1": _LINEAR,
    },
    ("vit_b_32", 768, 32): {"IMAGENET1K_V1": _SMALL},
    ("vit_l_16", 1024, 16): {
        "IMAGENET1K_V1": Way(224, 242, bicubic=False),
        "IMAGENET1K_SWAG_E2E_V1": Way(512, 512, bicubic=True),
        "IMAGENET1K_SWAG_LINEAR_V1": _LINEAR,
    },
    ("vit_l_32", 1024, 32): {"IMAGENET1K_V1": _SMALL},
    ("vit_h_14", 1280, 14): {
        "IMAGENET1K_SWAG_E2E_V1": Way(518, 518, bicubic=True),
        "IMAGENET1K_SWAG_LINEAR_V1": _LINEAR,
    },
}


def tell_pixels(config: ViTConfig, hints: Mapping[str, Any], origin: str) -> tuple[Preprocessing | None, str | None]:
    """Return how images become input, or the sentence that asks for it.

    Weights that are not published get what torchvision's own program of training does.
    """
    usual = preset("torchvision", image_size=config.image_size, channels=config.channels)
    ways = _ways(config, hints)
    sized = {name: way for name, way in ways.items() if (way.size, way.size) == config.image_size}
    if config.channels != 3 or not sized:
        return usual, None
    if len(set(sized.values())) > 1:
        why = f"published weights like it differ ({', '.join(sized)})"
        return None, f"{ask_pixels(origin, why)[:-1]}; or give one of those names as `architecture`."
    way = next(iter(sized.values()))
    interpolation: Interpolation = "bicubic" if way.bicubic else "bilinear"
    return replace(usual, crop_fraction=way.size / way.resized, interpolation=interpolation), None


def _ways(config: ViTConfig, hints: Mapping[str, Any]) -> dict[str, Way]:
    """Return the weights that a file may be, by name and tag."""
    answer = hints.get("architecture")
    if answer is None:
        shape = (config.dim, config.patch_size[0])
        rows = {key[0]: tags for key, tags in PUBLISHED.items() if key[1:] == shape}
        return {f"{name}.{tag}": way for name, tags in rows.items() for tag, way in tags.items()}
    known = {f"{key[0]}.{tag}": way for key, tags in PUBLISHED.items() for tag, way in tags.items()}
    ways = {name: way for name, way in known.items() if answer in (name, name.partition(".")[0])}
    if not ways:
        raise CheckpointError(f"torchvision has no weights {answer!r}.{did_you_mean(str(answer), known)}")
    return ways
