"""The paper's tables of models as data, and the names that stand for them: "B/16", "R50+B/16", "R152x2"."""

import dataclasses
import re
from typing import Any

from vitrail.base.errors import ConfigError, did_you_mean
from vitrail.model.axial_resnet import AxialResNetConfig
from vitrail.model.backbone import BackboneConfig
from vitrail.model.config import ViTConfig
from vitrail.model.mixer_settings import AxialAttention
from vitrail.model.resnet import ResNetConfig


@dataclasses.dataclass(frozen=True, kw_only=True)
class Size:
    """A row of Table 1."""

    depth: int
    dim: int
    mlp_dim: int
    num_heads: int


# Table 1 has B, L and H; the authors published the others later.
SIZES: dict[str, Size] = {
    "Ti": Size(depth=12, dim=192, mlp_dim=768, num_heads=3),
    "S": Size(depth=12, dim=384, mlp_dim=1536, num_heads=6),
    "B": Size(depth=12, dim=768, mlp_dim=3072, num_heads=12),
    "L": Size(depth=24, dim=1024, mlp_dim=4096, num_heads=16),
    "H": Size(depth=32, dim=1280, mlp_dim=5120, num_heads=16),
    "g": Size(depth=40, dim=1408, mlp_dim=6144, num_heads=16),
    "G": Size(depth=48, dim=1664, mlp_dim=8192, num_heads=16),
}

# Units in each stage of a ResNet.
RESNET_BLOCKS: dict[str, tuple[int, ...]] = {
    "26": (2, 2, 2, 2),
    "50": (3, 4, 6, 3),
    "101": (3, 4, 23, 3),
    "152": (3, 8, 36, 3),
    "200": (3, 24, 36, 3),
}

VIT_NAMES = tuple(f"{size}/{patch}" for size in ("Ti", "S", "B", "L", "H") for patch in (8, 14, 16, 32))
VIT_NAMES += ("g/14", "G/14", "Axial-B/16", "Axial-B/32")
HYBRID_NAMES = ("R+Ti/16", "R26+S/32", "R50+B/16", "R50+B/32", "R50+L/16", "R50+L/32")
RESNET_NAMES = ("R50x1", "R50x2", "R50x3", "R101x1", "R101x3", "R152x1", "R152x2", "R152x4", "R200x3", "Axial-R50x1")
NAMES = VIT_NAMES + HYBRID_NAMES + RESNET_NAMES

_NAME = re.compile(
    r"(?P<axial>Axial-)?(?:(?P<resnet>R(?P<layers>\d*)(?:x(?P<width>\d+))?)(?P<plus>\+)?)?"
    r"(?:(?:ViT-)?(?P<size>[A-Za-z]+)/(?P<patch>\d+)(?:x(?P<patch_width>\d+))?)?"
)


def named_config(name: str, **settings: Any) -> ViTConfig | ResNetConfig:
    """Return the config that a name stands for, with the fields in `settings` changed.

    "ViT-" in front of a size is optional, and any patch size is allowed: "B/12", "B/16x8". "Axial-" makes each block
    two, one along rows and one along columns, or the 3x3 convolutions of a ResNet attention along both (App. D.6).
    """
    kind, fields = _parse(name)
    names = {field.name for field in dataclasses.fields(kind)}
    for field in sorted(settings.keys() - names):
        raise ConfigError(
            f"{name} has no setting {field!r}; it has {', '.join(sorted(names))}.{did_you_mean(field, names)}"
        )
    return kind(**fields | settings)


def _parse(name: str) -> tuple[type[ViTConfig] | type[ResNetConfig], dict[str, Any]]:
    """Read a name as a kind of model and the fields that it sets."""
    match = _NAME.fullmatch(name.strip())
    if not match or bool(match["plus"]) != bool(match["resnet"] and match["size"]) or not any(match.groups()):
        raise _unknown(name)
    axial = bool(match["axial"])
    if match["size"] is None:
        return AxialResNetConfig if axial else ResNetConfig, _resnet_fields(
            name, match["layers"], int(match["width"] or 1)
        )
    if match["size"] not in SIZES:
        raise _unknown(name)
    size = dataclasses.asdict(SIZES[match["size"]])
    if axial:
        size |= {"depth": 2 * size["depth"], "mixer": AxialAttention(), "pool": "mean"}
    patch = int(match["patch"])
    if patch == 0 or match["patch_width"] == "0":
        raise ConfigError(f"the model {name!r} has patches without pixels; write the patch size as in B/16.")
    if match["resnet"] is None:
        return ViTConfig, size | {"patch_size": (patch, int(match["patch_width"] or patch))}
    if match["patch_width"] is not None:
        raise _unknown(name)
    patch_size, blocks = _hybrid_layout(name, match["layers"], patch)
    backbone = BackboneConfig(blocks=blocks, width=64 * int(match["width"] or 1))
    return ViTConfig, size | {"patch_size": (patch_size, patch_size), "backbone": backbone}


def _resnet_fields(name: str, layers: str, width: int) -> dict[str, Any]:
    if layers not in RESNET_BLOCKS or width == 0:
        raise _unknown(name)
    return {"blocks": RESNET_BLOCKS[layers], "width": 64 * width}


def _hybrid_layout(name: str, layers: str, total_stride: int) -> tuple[int, tuple[int, ...]]:
    """Return the patch size on the feature map and the units of each stage.

    The number in R50+B/16 is the total down-sampling, which for /16 needs stage 4 to move into stage 3. R+Ti/16
    keeps its published name although the root and patches of 8 cells together down-sample by 32.
    """
    if layers == "" and total_stride == 16:
        return 8, ()
    if layers in RESNET_BLOCKS and total_stride == 32:
        return 1, RESNET_BLOCKS[layers]
    if layers in RESNET_BLOCKS and total_stride == 16:
        first, second, third, fourth = RESNET_BLOCKS[layers]
        return 1, (first, second, third + fourth)
    raise _unknown(name)


def _unknown(name: str) -> ConfigError:
    hint = did_you_mean(name.strip().removeprefix("ViT-"), NAMES)
    return ConfigError(
        f"there is no model {name!r}; a name is a size and a patch (B/16), a ResNet and those (R50+B/16), "
        f"or a ResNet (R50x1); `vitrail models` lists them.{hint}"
    )
