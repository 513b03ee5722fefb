"""The ResNet baselines of the paper: "ResNet (BiT)" with group norm and standardised convolutions (Sec. 4.1).

Not the ResNet inside a hybrid (`hybrid.py`): here norm and ReLU come *before* each convolution (v2), padding is
symmetric, and kernels are divided by sqrt(var + eps).
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, get_args

import torch.nn.functional as F
from torch import Generator, nn

from vitrail.base.errors import ConfigError
from vitrail.base.products import Linear
from vitrail.base.shapes import FeatureMap, Images, KeptPatches, Kernel, Representation
from vitrail.model.anatomy import Branch, unit_branches
from vitrail.model.bottlenecks import Bottleneck, bottlenecks, halved, root_cost
from vitrail.model.checks import check_choice, check_count, check_divides, check_positive, check_size
from vitrail.model.contract import Layer, Model
from vitrail.model.convolution import Stage, Standardisation, framed, make_conv, make_norm
from vitrail.model.corruption import Corruption
from vitrail.model.family import ModelConfig
from vitrail.model.image_checks import check_images
from vitrail.model.patches import Size
from vitrail.model.trace import NOTHING, Encoded, Recorder, Reduce, ReduceUnits, ResNetTrace, Selection, Take, select
from vitrail.model.units import Unit


@dataclass(frozen=True, kw_only=True)
class ResNetConfig(ModelConfig, kind="resnet"):
    """A BiT ResNet."""

    noun = "ResNet"
    fixed: ClassVar[tuple[str, ...]] = ("channels", "blocks", "width")
    blocks: tuple[int, ...]
    """Units in each stage; (3, 4, 6, 3) for R50."""
    width: int = 64
    """Channels of the root: 64 times the x of R50x1, R50x2, ...; stage s has 4 * width * 2^(s-1)."""
    norm_groups: int = 32
    """Groups of every group norm."""
    norm_eps: float = 1e-5
    """Epsilon of every group norm."""
    standardisation: Standardisation = "sqrt-var-eps"
    """How kernels are standardised."""
    standardisation_eps: float = 1e-10
    """The epsilon of that formula (timm: 1e-8)."""
    any_size = True

    def __post_init__(self) -> None:
        """Refuse what cannot be built."""
        check_choice("standardisation", self.standardisation, get_args(Standardisation))
        check_positive(width=self.width, channels=self.channels, norm_groups=self.norm_groups, stages=len(self.blocks))
        check_positive(**{f"blocks[{stage}]": units for stage, units in enumerate(self.blocks)})
        check_size("image_size", self.image_size)
        check_count("num_classes", self.num_classes)
        check_divides("norm_groups", self.norm_groups, "width", self.width)

    @property
    def feature_width(self) -> int:
        """Channels of the last feature map, which the last linear layer sees."""
        return 4 * self.width * 2 ** (len(self.blocks) - 1)

    @property
    def feature_grid(self) -> Size:
        """Rows and columns of the last feature map."""
        size = halved(halved(self.image_size))
        for _ in self.blocks[1:]:
            size = halved(size)
        return size

    def units(self) -> Iterator[Bottleneck]:
        """Yield the sizes of every unit of every stage."""
        return bottlenecks(self.blocks, self.width, halved(halved(self.image_size)))

    @property
    def num_blocks(self) -> int:
        """Count the units of all stages."""
        return sum(self.blocks)

    @property
    def summary(self) -> str:
        """The model in a few words."""
        return "ResNet"

    def shrunk(self, image_size: Size) -> "ResNetConfig":
        """Return a tiny ResNet with as many stages."""
        return replace(self, blocks=(1,) * len(self.blocks), image_size=image_size, width=8, norm_groups=8)


_conv = partial(make_conv, same=False)


class PreActivationUnit(nn.Module):
    """A bottleneck, v2: shortcut + conv3(relu(norm3(conv2(relu(norm2(conv1(relu(norm1(x)))))))))."""

    def __init__(self, config: ResNetConfig, inputs: int, width: int, *, stride: int) -> None:
        super().__init__()
        outputs = 4 * width
        self.norm1, self.conv1 = make_norm(config, inputs), _conv(config, inputs, width, 1)
        self.norm2 = make_norm(config, width)
        self.conv2: nn.Module = _conv(config, width, width, 3, stride=stride)
        self.norm3, self.conv3 = make_norm(config, width), _conv(config, width, outputs, 1)
        self.shortcut = _conv(config, inputs, outputs, 1, stride=stride) if inputs != outputs or stride != 1 else None

    def forward(self, features: Images, *, units: Take | None = None) -> FeatureMap:
        """Transform a feature map; a shortcut with a convolution starts from the activated input."""
        activated = self.norm1(features).relu()
        residual = features if self.shortcut is None else self.shortcut(activated)
        features = self.conv1(activated)
        features = self.conv2(self.norm2(features).relu())
        features = self.norm3(features).relu()
        if units is not None:
            units(features.movedim(1, -1))
        return residual + self.conv3(features)


class ResNet(Model, config=ResNetConfig):
    """Root, stages, norm, mean over the map, linear."""

    config: ResNetConfig
    head_prefix = "linear."

    def __init__(self, config: ResNetConfig) -> None:
        super().__init__(config)
        self.root = _conv(config, config.channels, config.width, 7, stride=2)
        shapes = config.units()
        self.stages = nn.ModuleList()
        for stage, units in enumerate(config.blocks):
            strides = [2 if stage > 0 and unit == 0 else 1 for unit in range(units)]
            self.stages.append(Stage(*(self.make_unit(next(shapes), stride) for stride in strides)))
        self.norm = make_norm(config, config.feature_width)
        self.linear = Linear(config.feature_width, config.num_classes) if config.num_classes else None

    def make_unit(self, shape: Bottleneck, stride: int) -> nn.Module:
        """Build a unit of a stage."""
        return PreActivationUnit(self.config, shape.inputs, shape.width, stride=stride)

    @property
    def last_linear(self) -> nn.Linear | None:
        """The linear layer that gives logits."""
        return self.linear

    def layers(self) -> list[Layer]:
        """Return the root, each stage, and the head with the last norm."""
        stages = [
            Layer(name=f"stage {number}", prefixes=(f"stages.{number}.",), block=stage)
            for number, stage in enumerate(self.stages)
        ]
        return [Layer(name="root", prefixes=("root.",)), *stages, Layer(name="head", prefixes=("norm.", "linear."))]

    def filters(self) -> Kernel:
        """Return the kernels of the root, as it uses them."""
        return self.root.kernel.detach()

    def branches(self) -> list[Branch]:
        """Name the units."""
        return unit_branches(self.config.blocks, "", ("conv3.weight",))

    def encode(
        self,
        images: Images,
        *,
        kept: KeptPatches | None = None,
        drop_patches: float = 0.0,
        generator: Generator | None = None,  # noqa: ARG002 - nothing is drawn
        corruption: Corruption | None = None,
        any_size: bool = True,  # noqa: ARG002 - every size is taken
        layers: Selection = None,
        attention: Selection = None,
        heads: Selection = "all",  # noqa: ARG002
        reduce: Reduce | None = None,  # noqa: ARG002
        units: ReduceUnits | None = None,
        pooled_only: bool = False,  # noqa: ARG002 - the head sees all
    ) -> Encoded:
        """Map images to the last feature map, after norm and ReLU."""
        self.config.check_patches(drop=float(kept is not None or corruption is not None or drop_patches > 0), sizes=[])
        if attention is not None:
            raise ConfigError("a ResNet has no attention maps; leave attention out.")
        recorder = Recorder(layers=select(layers, len(self.stages) + 1, "layers"), units=units)
        features = self.norm(self.run(images, recorder)).relu()
        return Encoded(output=features, layers=recorder.layers, units=recorder.units, feature_map=features)

    def represent(self, encoded: FeatureMap) -> Representation:
        """Take the mean over the map."""
        return encoded.mean(dim=(2, 3))

    def units(self) -> list[Unit]:
        """Count the root, each unit, and the head with the last norm."""
        config = self.config
        units = [root_cost(config.width, config.channels, config.image_size, same=False)]
        units += [self.unit_cost(unit) for unit in config.units()]
        cells, width = math.prod(config.feature_grid), config.feature_width
        return [*units, Unit(macs=width * config.num_classes, activations=(2 * cells + 1) * width, entry=width * cells)]

    def unit_cost(self, unit: Bottleneck) -> Unit:
        """Count a unit, whose three norms and their ReLUs keep their inputs."""
        before, after = math.prod(unit.before), math.prod(unit.after)
        return unit.cost(activations=2 * unit.inputs * before + 2 * unit.width * (before + after))

    def trace(self, images: Images) -> ResNetTrace:
        """Run one pass and return every named intermediate."""
        recorder = Recorder(by_name=True)
        representation = self.represent(self.norm(self.run(images, recorder)).relu())
        logits = self.classify(representation)
        return ResNetTrace(feature_maps=recorder.named, representation=representation, logits=logits)

    def run(self, images: Images, recorder: Recorder = NOTHING) -> FeatureMap:
        """Map images to the output of the last stage, and record the selected intermediates."""
        features = self.shrink(images)
        recorder.name("root", features)
        recorder.layer(0, features)
        for number, stage in enumerate(self.stages):
            features = stage(features, name=f"stages.{number}", recorder=recorder)
            recorder.layer(number + 1, features)
        return features

    def shrink(self, images: Images) -> FeatureMap:
        """Apply the root; the border of the max-pool is zero as in BiT, which can be the maximum before any ReLU."""
        check_images(images, self.config.channels, None if self.config.any_size else self.config.image_size)
        return F.max_pool2d(framed(self.root(images.to(self.root.weight.dtype))), 3, stride=2)
