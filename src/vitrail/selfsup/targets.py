"""What is predicted of a corrupted patch: the three targets of App. B.1.2, as pure functions of its pixels.

| target        | cells | outputs for 3 channels | loss                                                |
|---------------|-------|------------------------|-----------------------------------------------------|
| `mean-colour` | 1x1   | 512                    | cross-entropy                                       |
| `downsized`   | 4x4   | 16 x 512               | cross-entropy, the mean over the 16 cells           |
| `patch`       | -     | P x P x 3              | squared error, the mean over pixels as the model sees them |

Bins, where the paper is silent: the mean m of a channel over a cell, from 0 to 255, falls into bin floor(m / 32), of 8.
The bins b_1, b_2, b_3 of three channels are one class, 64 b_1 + 8 b_2 + b_3. One or two channels are 8 or 64 classes;
more than three are taken three at a time, each three (and the rest) a class of their own, and their losses add up. A
cell (i, j) of 4x4 averages the rows floor(i P / 4) to below ceil((i + 1) P / 4), and columns likewise, so that any P
will do. Sums of pixels are whole numbers, and so is the comparison with the edges of bins: nothing is rounded.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from vitrail.base.shapes import Images, PatchPixels, PixelBatch
from vitrail.data.preprocessing import Preprocessing
from vitrail.model.patches import Size, patchify
from vitrail.selfsup.painting import SomePixels, denormalise

TargetName = Literal["mean-colour", "downsized", "patch"]
Some = Float[Tensor, "batch some outputs"]
"""Predictions for some patches of each image."""
Bins = Int[Tensor, "batch patch cell group"]

BINS = 8
"""3 bits of a channel."""
JOINT = 3
"""Channels that make one class together."""
CELLS = 4
"""Cells along a side of the down-sized patch."""


def groups(channels: int) -> list[int]:
    """Return how many channels make each class: three at a time, and the rest."""
    return [min(JOINT, channels - first) for first in range(0, channels, JOINT)]


def windows(pixels: int, cells: int) -> Float[Tensor, "cell pixel"]:
    """Return 1 where a pixel belongs to a cell, along one side."""
    rows = torch.zeros(cells, pixels)
    for cell in range(cells):
        rows[cell, cell * pixels // cells : -(-(cell + 1) * pixels // cells)] = 1
    return rows


def colour_bins(images: PixelBatch, patch_size: Size, cells: int) -> Bins:
    """Sort the mean colour of each cell of each patch into its class, for each group of channels."""
    height, width = (windows(side, cells).to(images.device) for side in patch_size)
    pixels = patchify(images.float(), patch_size).unflatten(2, (images.shape[1], *patch_size))
    sums = torch.einsum("ih,bnchw,jw->bnijc", height, pixels, width).long()  # exact: below 2^24
    counts = (height.sum(1)[:, None] * width.sum(1)[None]).long()[:, :, None]
    bins = (sums * BINS // (256 * counts)).flatten(2, 3)  # batch patch cell channel
    first, classes = 0, []
    for many in groups(images.shape[1]):
        radix = BINS ** torch.arange(many - 1, -1, -1, device=images.device)
        classes.append((bins[..., first : first + many] * radix).sum(-1))
        first += many
    return torch.stack(classes, dim=-1)


def colours_of(classes: Sequence[Int[Tensor, "*place"]], channels: int) -> Float[Tensor, "*place channel"]:
    """Return the middle of the bins of a class of each group, from 0 to 255."""
    values = []
    for code, many in zip(classes, groups(channels), strict=True):
        values += [code // BINS ** (many - 1 - place) % BINS for place in range(many)]
    return (torch.stack(values, dim=-1).float() + 0.5) * (256 / BINS)


class Target(Protocol):
    """What is predicted of a patch."""

    channels: int
    patch_size: Size

    @property
    def outputs(self) -> int:
        """How many numbers are predicted of each patch."""

    def values(self, images: PixelBatch, normalised: Images) -> Tensor:
        """Return what is to be predicted of every patch: `batch patch ...`."""

    def loss(self, predicted: Some, values: Tensor) -> tuple[Tensor, Tensor | None]:
        """Return the mean loss, and the sum over images of the share of right answers; None where there are none."""

    def paint(self, predicted: Some, preprocessing: Preprocessing) -> SomePixels:
        """Return predicted pixels, from 0 to 255."""


@dataclass(frozen=True, kw_only=True)
class ColourTarget:
    """The colours of the cells of a patch, in 3 bits of each channel."""

    channels: int
    patch_size: Size
    cells: int

    @property
    def outputs(self) -> int:
        """A class for every cell and group of channels."""
        return self.cells**2 * sum(BINS**many for many in groups(self.channels))

    def values(self, images: PixelBatch, normalised: Images) -> Bins:  # noqa: ARG002 - colours are those of the file
        """Return the classes of every cell of every patch."""
        return colour_bins(images, self.patch_size, self.cells)

    def loss(self, predicted: Some, values: Bins) -> tuple[Tensor, Tensor]:
        """Return the cross-entropy: the mean over patches and cells, the sum over groups of channels."""
        total, right = predicted.new_zeros(()), torch.ones_like(values[..., 0], dtype=torch.bool)
        for number, logits in enumerate(self._logits(predicted)):
            classes = values[..., number]
            total = total + F.cross_entropy(logits.flatten(0, 2).float(), classes.flatten())
            right &= logits.detach().argmax(-1) == classes
        return total, right.float().mean(dim=(1, 2)).sum()

    def paint(self, predicted: Some, preprocessing: Preprocessing) -> SomePixels:  # noqa: ARG002 - colours are the file's
        """Fill each cell with the middle of its most likely bins."""
        likely = [logits.argmax(-1) for logits in self._logits(predicted)]
        colours = colours_of(likely, self.channels).unflatten(2, (self.cells, self.cells))
        height, width = self.patch_size
        rows = torch.arange(height, device=colours.device) * self.cells // height
        columns = torch.arange(width, device=colours.device) * self.cells // width
        return colours[:, :, rows][:, :, :, columns].permute(0, 1, 4, 2, 3).flatten(2)

    def _logits(self, predicted: Some) -> list[Float[Tensor, "batch some cell _"]]:
        sizes = [BINS**many for many in groups(self.channels)]
        return list(predicted.unflatten(2, (self.cells**2, -1)).split(sizes, dim=-1))


@dataclass(frozen=True, kw_only=True)
class PixelTarget:
    """Every pixel of a patch, as the model sees it."""

    channels: int
    patch_size: Size

    @property
    def outputs(self) -> int:
        """A number for every pixel and channel."""
        return self.channels * self.patch_size[0] * self.patch_size[1]

    def values(self, images: PixelBatch, normalised: Images) -> PatchPixels:  # noqa: ARG002 - a target takes both
        """Return the pixels of every patch."""
        return patchify(normalised, self.patch_size)

    def loss(self, predicted: Some, values: Some) -> tuple[Tensor, None]:
        """Return the mean squared error."""
        return F.mse_loss(predicted.float(), values.float()), None

    def paint(self, predicted: Some, preprocessing: Preprocessing) -> SomePixels:
        """Return what is predicted, as pixels of a file."""
        return denormalise(predicted, preprocessing)


def make_target(name: TargetName, channels: int, patch_size: Size) -> ColourTarget | PixelTarget:
    """Return a target for patches of a size."""
    if name == "patch":
        return PixelTarget(channels=channels, patch_size=patch_size)
    cells = 1 if name == "mean-colour" else CELLS
    return ColourTarget(channels=channels, patch_size=patch_size, cells=cells)
