"""The convolutional half of a hybrid: the reference release's ResNet, whose feature map is cut into patches (Sec. 3.1).

Not BiT's ResNet of `resnet.py`: here norm and ReLU come *after* each convolution (v1), padding is SAME, and kernels
are divided by std + eps.
"""

import math
from functools import partial

from torch import nn

from vitrail.base.shapes import FeatureMap, Images
from vitrail.model.backbone import BackboneConfig
from vitrail.model.bottlenecks import bottlenecks, halved, padded, root_cost
from vitrail.model.convolution import Stage, make_conv, make_norm, max_pool_same
from vitrail.model.patches import Size
from vitrail.model.trace import NOTHING, Recorder, Take
from vitrail.model.units import Unit

_conv = partial(make_conv, same=True)


class Root(nn.Module):
    """7x7/2 convolution, norm, ReLU, 3x3/2 max-pool: an image becomes a map of a quarter of its size."""

    def __init__(self, config: BackboneConfig, channels: int) -> None:
        super().__init__()
        self.conv = _conv(config, channels, config.width, 7, stride=2)
        self.norm = make_norm(config, config.width)

    def forward(self, images: Images, *, recorder: Recorder = NOTHING) -> FeatureMap:
        """Shrink the image."""
        convolved = self.conv(images)
        recorder.name("root.conv", convolved)
        normed = self.norm(convolved)
        recorder.name("root.norm", normed)
        return max_pool_same(normed).relu()  # as in the other order, to the bit, with a quarter of the values


class PostActivationUnit(nn.Module):
    """A bottleneck, v1: relu(shortcut + norm3(conv3(relu(norm2(conv2(relu(norm1(conv1))))))))."""

    def __init__(self, config: BackboneConfig, inputs: int, width: int, *, stride: int) -> None:
        super().__init__()
        outputs = 4 * width
        self.conv1, self.norm1 = _conv(config, inputs, width, 1), make_norm(config, width)
        self.conv2, self.norm2 = _conv(config, width, width, 3, stride=stride), make_norm(config, width)
        self.conv3, self.norm3 = _conv(config, width, outputs, 1), make_norm(config, outputs)
        self.shortcut: nn.Sequential | None = None
        if inputs != outputs or stride != 1:
            self.shortcut = nn.Sequential()
            self.shortcut.add_module("conv", _conv(config, inputs, outputs, 1, stride=stride))
            self.shortcut.add_module("norm", make_norm(config, outputs))

    def forward(self, features: Images, *, units: Take | None = None) -> FeatureMap:
        """Transform a feature map; `units` takes the input of the last convolution."""
        residual = features if self.shortcut is None else self.shortcut(features)
        features = self.norm1(self.conv1(features)).relu()
        features = self.norm2(self.conv2(features)).relu()
        if units is not None:
            units(features.movedim(1, -1))
        features = self.norm3(self.conv3(features))
        return (residual + features).relu()


class Backbone(nn.Module):
    """Root and stages; each stage after the first halves the map and doubles the channels."""

    def __init__(self, config: BackboneConfig, channels: int) -> None:
        super().__init__()
        self.root = Root(config, channels)
        self.stages = nn.ModuleList()
        inputs = config.width
        for stage, units in enumerate(config.blocks):
            width = config.width * 2**stage
            strides = [1 if stage == 0 else 2] + [1] * (units - 1)
            blocks = Stage()
            for stride in strides:
                blocks.append(PostActivationUnit(config, inputs, width, stride=stride))
                inputs = 4 * width
            self.stages.append(blocks)

    def forward(self, images: Images, *, recorder: Recorder = NOTHING) -> FeatureMap:
        """Map an image to the feature map that is cut into patches; each map has the name of its module."""
        features = self.root(images, recorder=recorder)
        recorder.name("root", features)
        for number, stage in enumerate(self.stages):
            features = stage(features, name=f"stages.{number}", recorder=recorder)
        return features


def backbone_costs(config: BackboneConfig, channels: int, image_size: Size) -> list[Unit]:
    """Count the root, each unit, and the last ReLU."""
    units, size = [root_cost(config.width, channels, image_size, same=True)], halved(halved(image_size))
    for unit in bottlenecks(config.blocks, config.width, size):
        before, after = math.prod(unit.before), math.prod(unit.after)
        # The input, two norms with their ReLUs, the third norm, and the shortcut's.
        activations = unit.inputs * before + 2 * unit.width * (before + after) + 4 * unit.width * after
        if unit.shortcut:
            activations += 4 * unit.width * after
        cells, copied = padded(unit.before, 3)
        if unit.before != unit.after and copied:
            activations += unit.width * cells
        size = unit.after
        units.append(unit.cost(activations=activations))
    # The last ReLU's output, of which patches are a copy; the root's is the first unit's input.
    return [*units, Unit(macs=0, activations=config.channels * math.prod(size))]
