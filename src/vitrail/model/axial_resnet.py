"""AxialResNet (App. D.6; Wang et al. 2020): a ResNet whose 3x3 convolutions are attention along rows and columns.

Row attention, then column attention, each with relative positions and weights of its own; where the convolution has
stride 2, the mean over 2x2 cells follows. Everything else is BiT's ResNet (`resnet.py`).
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import torch.nn.functional as F
from torch import Tensor, nn

from vitrail.base.errors import ConfigError
from vitrail.base.shapes import FeatureMap, Images
from vitrail.model.attention import SelfAttention
from vitrail.model.bottlenecks import Bottleneck, conv_macs
from vitrail.model.checks import check_divides, check_positive
from vitrail.model.family import ModelConfig, Move
from vitrail.model.patches import Size
from vitrail.model.positions import resize_axis
from vitrail.model.resnet import PreActivationUnit, ResNet, ResNetConfig
from vitrail.model.units import Unit


@dataclass(frozen=True, kw_only=True)
class AxialResNetConfig(ResNetConfig, kind="axial-resnet"):
    """A BiT ResNet with axial attention in place of its 3x3 convolutions."""

    noun = "ResNet with axial attention"
    fixed: ClassVar[tuple[str, ...]] = ("channels", "blocks", "width", "num_heads")
    num_heads: int = 8
    """Attention heads along each axis."""
    any_size = False

    def __post_init__(self) -> None:
        """Refuse what cannot be built."""
        super().__post_init__()
        check_positive(num_heads=self.num_heads)
        check_divides("num_heads", self.num_heads, "width", self.width)

    @property
    def summary(self) -> str:
        """The model in a few words."""
        return "AxialResNet"

    def check_patches(self, *, drop: float, sizes: Sequence[Size]) -> None:
        """Refuse images of other sizes: relative positions belong to one feature map."""
        super().check_patches(drop=drop, sizes=sizes)
        if any(size != self.image_size for size in sizes):
            raise ConfigError("the relative positions of a ResNet with axial attention belong to one size of images.")

    def move(self, old: ModelConfig, names: Iterable[str]) -> Move:
        """Resize relative positions for another size of images."""
        assert isinstance(old, AxialResNetConfig)  # noqa: S101 - one file tells of one kind
        plain, lengths = super().move(old, names), self.offsets()
        resized: dict[str, Callable[[Tensor], Tensor]] = {
            name: partial(resize_axis, new=lengths[name])
            for name in names
            if name in lengths and lengths[name] != old.offsets()[name]
        }
        notes = ("relative positions were resized for images of another size.",) if resized else ()
        return Move(resized=resized, new_head=plain.new_head, notes=notes)

    def offsets(self) -> dict[str, int]:
        """Return the length of each table of relative positions, by the name of its weight."""
        places = [(stage, unit) for stage, units in enumerate(self.blocks) for unit in range(units)]
        return {
            f"stages.{stage}.{unit}.conv2.{axis}.offsets": 2 * side - 1
            for (stage, unit), shape in zip(places, self.units(), strict=True)
            for axis, side in (("rows", shape.before[1]), ("columns", shape.before[0]))
        }


class AxialPair(nn.Module):
    """Attention along rows, then along columns, then the mean over cells where there is a stride."""

    def __init__(self, width: int, num_heads: int, size: Size, stride: int) -> None:
        super().__init__()
        self.stride = stride
        self.rows = SelfAttention(width, num_heads, relative_tokens=size[1])
        self.columns = SelfAttention(width, num_heads, relative_tokens=size[0])

    def forward(self, features: Images) -> FeatureMap:
        """Mix the cells of a feature map."""
        cells = features.permute(0, 2, 3, 1)  # batch rows columns channels
        cells = self.rows(cells.flatten(0, 1)).unflatten(0, cells.shape[:2]).transpose(1, 2)
        cells = self.columns(cells.flatten(0, 1)).unflatten(0, cells.shape[:2])
        features = cells.permute(0, 3, 2, 1)
        if self.stride == 1:
            return features
        return F.avg_pool2d(features, self.stride, ceil_mode=True, count_include_pad=False)


class AxialUnit(PreActivationUnit):
    """A bottleneck, v2, with axial attention in the place of its 3x3 convolution."""

    def __init__(self, config: AxialResNetConfig, shape: Bottleneck, *, stride: int) -> None:
        super().__init__(config, shape.inputs, shape.width, stride=stride)
        self.conv2: nn.Module = AxialPair(shape.width, config.num_heads, shape.before, stride)


class AxialResNet(ResNet, config=AxialResNetConfig):
    """A ResNet of such units."""

    config: AxialResNetConfig

    def make_unit(self, shape: Bottleneck, stride: int) -> nn.Module:
        """Build a unit of a stage."""
        return AxialUnit(self.config, shape, stride=stride)

    def unit_cost(self, unit: Bottleneck) -> Unit:
        """Count a unit: attention along both axes in the place of the 3x3 convolution."""
        plain, width, heads = super().unit_cost(unit), unit.width, self.config.num_heads
        cells = math.prod(unit.before)
        macs = plain.macs - conv_macs(width, width, 3, math.prod(unit.after))
        activations = plain.activations
        for side in unit.before:
            offsets = 2 * side - 1
            macs += cells * width * (4 * width + 2 * side + offsets)
            activations += 6 * cells * width + cells * heads * (side + offsets)
        return Unit(macs=macs, activations=activations, entry=plain.entry)
