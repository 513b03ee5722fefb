"""One image: a path, an encoded file, an image of Pillow, an array or a tensor of 8 bits."""

import os

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from vitrail.base.errors import ImageError, InputError
from vitrail.base.shapes import NewPixels, Pixels
from vitrail.data.pixels.decode import decode, from_array, from_pil, to_channels
from vitrail.data.sources.files import missing, read_inside

Picture = str | os.PathLike[str] | bytes | Image.Image | np.ndarray | Tensor


def pixels_of(image: Picture, channels: int) -> NewPixels:
    """Return the pixels of an image with the channels of a model; a file is turned upright as everywhere."""
    if isinstance(image, bytes):
        pixels = decode(image)
    elif isinstance(image, str | os.PathLike):
        pixels = decode(read_file(image))
    elif isinstance(image, Image.Image):
        pixels = from_pil(image)
    elif isinstance(image, np.ndarray | Tensor):
        pixels = _from_numbers(image, channels)
    else:
        raise InputError(
            f"an image is a {type(image).__name__}, but must be a path, bytes of a file, a Pillow image, or "
            "an array or tensor of uint8."
        )
    return to_channels(pixels, channels)


def name_of(image: Picture, place: int) -> str:
    """Return what to call an image: its path if it has one, else its place among the others."""
    if isinstance(image, str | os.PathLike):
        return os.fspath(image)
    return getattr(image, "filename", "") or f"image {place}"


def read_file(path: str | os.PathLike[str]) -> bytes:
    """Read an image file by its path; raise `ImageError` where that fails."""
    try:
        real = os.path.realpath(os.fsencode(path))
        if os.path.isdir(real):  # noqa: PTH112
            raise ImageError("it is a folder; give the images in it, or use `vitrail predict`.")
        return read_inside(real, (os.path.dirname(real),))  # noqa: PTH120
    except FileNotFoundError:
        raise ImageError(missing(os.fspath(path))) from None
    except OSError as error:
        raise ImageError(f"it could not be read: {error.strerror or error}.") from None
    except ValueError as error:  # a name with a zero byte
        raise ImageError(f"it could not be read: {error}.") from None


def _from_numbers(image: np.ndarray | Tensor, channels: int) -> Pixels:
    """Find out which axis of an array or tensor has the channels, and put it last."""
    shape = "x".join(map(str, image.shape))
    if image.ndim == 4:
        raise ImageError(f"an array of {shape} is a batch; give a list of images, such as list(array).")
    if isinstance(image, Tensor):
        if image.dtype != torch.uint8:
            raise ImageError(f"a tensor must be of torch.uint8, 0 to 255, not {image.dtype}; scale it first.")
        if image.layout != torch.strided or image.is_meta:
            kind = "on the device 'meta'" if image.is_meta else f"of the layout {image.layout}"
            raise ImageError(f"a tensor {kind} does not hold its pixels; give a dense one, on a CPU or GPU.")
        image = image.detach().cpu().numpy()
    if image.ndim != 3:
        return from_array(image)
    counts = sorted({1, 3, channels})
    last, first = image.shape[2] in counts, image.shape[0] in counts
    if last and first:
        raise ImageError(
            f"an array of {shape} does not show which axis has the channels, the first or the last; "
            "give it as a Pillow image, with Image.fromarray."
        )
    if not last and not first:
        raise ImageError(
            f"an array of {shape} has neither a last nor a first axis of {' or '.join(map(str, counts))} channels, "
            f"which a model of {channels} takes; leave out the others, such as the fourth by array[:, :, :3]."
        )
    return from_array(image if last else image.transpose(1, 2, 0))
