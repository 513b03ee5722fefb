"""The cost of both ResNets: roots and bottlenecks by their shapes."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from vitrail.model.patches import Size
from vitrail.model.units import Unit


@dataclass(frozen=True, kw_only=True)
class Bottleneck:
    """The sizes of one unit of a ResNet."""

    inputs: int
    """Channels of its input."""
    width: int
    """Channels inside; its output has four times as many."""
    before: Size
    """Rows and columns of its input."""
    after: Size
    """Rows and columns of its output."""
    shortcut: bool
    """Whether its shortcut has a convolution."""

    def cost(self, *, activations: int) -> Unit:
        """Count its convolutions; `activations` depend on where its norms are."""
        before, after, outputs = math.prod(self.before), math.prod(self.after), 4 * self.width
        macs = conv_macs(self.inputs, self.width, 1, before) + conv_macs(self.width, self.width, 3, after)
        macs += conv_macs(self.width, outputs, 1, after)
        if self.shortcut:
            macs += conv_macs(self.inputs, outputs, 1, after)
        return Unit(macs=macs, activations=activations, entry=self.inputs * before)


def bottlenecks(blocks: tuple[int, ...], width: int, size: Size) -> Iterator[Bottleneck]:
    """Yield every unit of every stage, from the size of the root's output."""
    inputs = width
    for stage, units in enumerate(blocks):
        for unit in range(units):
            after = halved(size) if stage > 0 and unit == 0 else size
            yield Bottleneck(inputs=inputs, width=width * 2**stage, before=size, after=after, shortcut=unit == 0)
            inputs, size = 4 * width * 2**stage, after


def root_cost(width: int, channels: int, image_size: Size, *, same: bool) -> Unit:
    """Count a root: a hybrid's has SAME padding, a norm and a ReLU; BiT's has equal padding on all sides."""
    half = halved(image_size)
    image = padded(image_size, 7)[0] if same and padded(image_size, 7)[1] else math.prod(image_size)
    pool_input = (half[0] + 2) * (half[1] + 2)
    if same:  # `max_pool_same` pads by itself where one side is even and the other odd, else its input may be a copy
        pool_input = padded(half, 3)[0] if (half[0] - half[1]) % 2 else math.prod(half)
    places = 2 * width * math.prod(halved(half))  # a 64-bit index for each maximum
    normed = width * math.prod(half) if same else 0
    activations = channels * image + width * pool_input + places + normed
    macs = conv_macs(channels, width, 7, math.prod(half))
    return Unit(macs=macs, activations=activations, entry=math.prod(image_size) * channels)


def conv_macs(inputs: int, outputs: int, kernel: int, cells: int) -> int:
    """Count the multiply-accumulates of a convolution with `cells` output cells."""
    return inputs * outputs * kernel * kernel * cells


def halved(size: Size) -> Size:
    """Return the size after stride 2, rounded up."""
    return -(-size[0] // 2), -(-size[1] // 2)


def padded(size: Size, kernel: int) -> tuple[int, bool]:
    """Count the cells of a map after SAME padding for stride 2, and report whether that makes a copy."""
    totals = [max((-(-side // 2) - 1) * 2 + kernel - side, 0) for side in size]
    return (size[0] + totals[0]) * (size[1] + totals[1]), any(total % 2 for total in totals)
