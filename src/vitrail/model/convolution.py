"""Standardised convolutions and SAME padding, for hybrids and BiT's ResNets."""

from typing import Literal, Protocol, runtime_checkable

import torch
import torch.nn.functional as F
from torch import nn

from vitrail.base.shapes import FeatureMap, Images, Kernel
from vitrail.model.trace import NOTHING, Recorder

Standardisation = Literal["std-plus-eps", "sqrt-var-eps"]


def standardise(kernel: Kernel, way: Standardisation, eps: float) -> Kernel:
    """Give each output channel's kernel mean 0 and deviation 1.

    The two formulas are not the same: the reference release's hybrid divides by std + eps, BiT and timm by
    sqrt(var + eps). Both use the population variance over input, height and width.
    """
    variance, mean = torch.var_mean(kernel, dim=(1, 2, 3), correction=0, keepdim=True)
    deviation = variance.sqrt() + eps if way == "std-plus-eps" else (variance + eps).sqrt()
    return (kernel - mean) / deviation


class StandardisedConv2d(nn.Module):
    """A convolution without bias whose kernel is standardised at every pass.

    `same=True` pads as the reference release does: the output is ceil(input / stride), with the odd pixel at the
    bottom and right. `same=False` pads (kernel - 1) / 2 on each side, as BiT does. For even inputs and
    stride 2 the two differ.
    """

    def __init__(
        self,
        inputs: int,
        outputs: int,
        kernel_size: int,
        *,
        stride: int = 1,
        same: bool,
        standardisation: Standardisation,
        eps: float,
    ) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(outputs, inputs, kernel_size, kernel_size))
        self.kernel_size, self.stride, self.same = kernel_size, stride, same
        self.standardisation: Standardisation = standardisation
        self.eps = eps

    @property
    def kernel(self) -> Kernel:
        """The standardised kernel."""
        return standardise(self.weight, self.standardisation, self.eps)

    def forward(self, images: Images) -> FeatureMap:
        """Convolve."""
        kernel = self.kernel
        if not self.same:
            return F.conv2d(images, kernel, stride=self.stride, padding=(self.kernel_size - 1) // 2)
        left, right, top, bottom = same_padding(images, self.kernel_size, self.stride)
        if left == right and top == bottom:
            return F.conv2d(images, kernel, stride=self.stride, padding=(top, left))
        return F.conv2d(F.pad(images, (left, right, top, bottom)), kernel, stride=self.stride)


@runtime_checkable
class NormedConvolutions(Protocol):
    """The settings of convolutions and norms in the configs of both ResNets."""

    @property
    def norm_groups(self) -> int:
        """Groups of every group norm."""

    @property
    def norm_eps(self) -> float:
        """Epsilon of every group norm."""

    @property
    def standardisation(self) -> Standardisation:
        """How kernels are standardised."""

    @property
    def standardisation_eps(self) -> float:
        """The epsilon of that formula."""


def make_conv(
    config: NormedConvolutions, inputs: int, outputs: int, kernel_size: int, *, stride: int = 1, same: bool
) -> StandardisedConv2d:
    """Make a convolution of a ResNet."""
    return StandardisedConv2d(
        inputs,
        outputs,
        kernel_size,
        stride=stride,
        same=same,
        standardisation=config.standardisation,
        eps=config.standardisation_eps,
    )


class GroupNorm(nn.GroupNorm):
    """A group norm in float32 under autocast on a CPU too, as it is on GPUs: bfloat16 takes 4 to 6 times as long."""

    def forward(self, input: Images) -> FeatureMap:  # noqa: A002  (torch's name)
        """Normalise each group of channels."""
        if input.device.type == "cpu" and torch.is_autocast_enabled("cpu"):
            input = input.float()  # noqa: A001
        return super().forward(input)


def make_norm(config: NormedConvolutions, channels: int) -> GroupNorm:
    """Make a group norm of a ResNet."""
    return GroupNorm(config.norm_groups, channels, eps=config.norm_eps)


class Stage(nn.Sequential):
    """The units of one stage of a ResNet, one after the other."""

    def forward(self, features: Images, *, name: str = "", recorder: Recorder = NOTHING) -> FeatureMap:
        """Transform a feature map; each unit's output has the stage's name and its own number."""
        for number, unit in self.named_children():
            features = unit(features, units=recorder.activations(f"{name}.{number}"))
            recorder.name(f"{name}.{number}", features)
        return features


def same_padding(images: Images, kernel_size: int, stride: int) -> tuple[int, int, int, int]:
    """Count the pixels to add left, right, top and bottom; for 224 px, 7x7/2 gives 2, 3 and 3x3/2 gives 0, 1."""
    amounts = []
    for side in (images.shape[3], images.shape[2]):
        total = max((-(-side // stride) - 1) * stride + kernel_size - side, 0)
        amounts += [total // 2, total - total // 2]
    left, right, top, bottom = amounts
    return left, right, top, bottom


def max_pool_same(images: Images) -> FeatureMap:
    """Take the maximum over 3x3 with stride 2; what SAME padding adds is never the maximum.

    torch's kernel for channels that lie side by side takes a tenth of the time of the other, the copy included, and
    `ceil_mode` cuts windows off at the bottom and right edge, where SAME pads sides of even length.
    """
    left, right, top, bottom = same_padding(images, 3, 2)
    if torch.compiler.is_exporting() or (right - left, bottom - top) not in ((0, 0), (1, 1)):
        return F.max_pool2d(F.pad(images, (left, right, top, bottom), value=float("-inf")), 3, stride=2)
    images = images.contiguous(memory_format=torch.channels_last) if images.device.type == "cpu" else images
    return F.max_pool2d(images, 3, stride=2, padding=(top, left), ceil_mode=right > left)


def framed(images: Images) -> FeatureMap:
    """Put a frame of zeros, one cell wide, around a map, as BiT does before it takes the maximum.

    Exported, it is a concatenation: ONNX Runtime takes a padding there for one that is never the maximum.
    """
    if not torch.compiler.is_exporting():
        return F.pad(images, (1, 1, 1, 1))
    column = torch.zeros_like(images[..., :1])
    wide = torch.cat([column, images, column], dim=3)
    row = torch.zeros_like(wide[:, :, :1])
    return torch.cat([row, wide, row], dim=2)
