"""Cut an image into patches and put it together again (Sec. 3.1)."""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from vitrail.base.errors import GridError
from vitrail.base.shapes import Images, PatchPixels

Size = tuple[int, int]
"""Height and width."""


def patch_grid(image_size: Size, patch_size: Size) -> Size:
    """Count the rows and columns of patches; N is their product."""
    (height, width), (patch_height, patch_width) = image_size, patch_size
    if height % patch_height or width % patch_width:
        fit = tuple(max(side // patch, 1) * patch for side, patch in zip(image_size, patch_size, strict=True))
        raise GridError(
            f"patch size {size_text(patch_size)} does not divide the image size {size_text(image_size)}; "
            f"resize to {size_text(fit)} or choose a patch size that divides both sides."
        )
    return height // patch_height, width // patch_width


def size_text(size: tuple[int, ...]) -> str:
    """Write a size as 224x224."""
    return "x".join(map(str, size))


def patchify(images: Float[Tensor, "batch channel height width"], patch_size: Size) -> PatchPixels:
    """Flatten each patch into a row: x in R^(H x W x C) -> x_p in R^(N x P^2 C).

    The values of a patch run over channel, then row, then column: the order in which a convolution kernel is
    stored, which makes E the same memory as the kernel of a strided convolution.
    """
    batch, channels, height, width = images.shape
    rows, columns = patch_grid((height, width), patch_size)
    cells = images.reshape(batch, channels, rows, patch_size[0], columns, patch_size[1])
    return cells.permute(0, 2, 4, 1, 3, 5).reshape(batch, rows * columns, -1)


def unpatchify(patches: PatchPixels, patch_size: Size, grid: Size) -> Images:
    """Undo `patchify` for a grid of (rows, columns)."""
    (patch_height, patch_width), (rows, columns) = patch_size, grid
    cells = patches.unflatten(2, (-1, patch_height, patch_width)).unflatten(1, grid)
    return cells.permute(0, 3, 1, 4, 2, 5).reshape(patches.shape[0], -1, rows * patch_height, columns * patch_width)


def resize_patch_kernel(kernel: Tensor, old: Size, new: Size) -> Tensor:
    """Compute the kernel for patches of another size whose response to a resized patch is closest to the old one.

    With B the matrix that resizes a patch x, the new kernel w' minimises E |<x, w> - <B x, w'>|^2 over white x: it
    is the least-squares solution of B^T w' = w, and exact when patches grow.
    """
    cells = old[0] * old[1]
    basis = torch.eye(cells, dtype=torch.float64).reshape(cells, 1, *old)
    resized = F.interpolate(basis, size=new, mode="bilinear", align_corners=False, antialias=True)
    inverse = torch.linalg.pinv(resized.reshape(cells, -1))  # new cells, old cells
    rows = kernel.double().reshape(len(kernel), -1, cells)
    return (rows @ inverse.mT).flatten(1).to(kernel.dtype)
