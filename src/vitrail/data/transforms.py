"""From an image of any size to a model's input, by the settings that are stored with the weights."""

from collections.abc import Sequence

import torch
from torch import Tensor

from vitrail.base.errors import ImageError, InputError
from vitrail.base.shapes import Images, NewPixels, PixelBatch, Pixels
from vitrail.data.pictures import Picture, name_of, pixels_of
from vitrail.data.pixels.resize import resize, resize_window, side_by_side
from vitrail.data.preprocessing import Preprocessing

# Of a resized image with more than this many times the pixels that are kept, only the kept part is computed.
_WASTE = 16
# Values that are normalised at a time, while they are in the cache; one pass after the other takes twice as long.
_CACHED = 2**18


def prepare(images: Sequence[Picture], preprocessing: Preprocessing) -> Images:
    """Read images of any kind, and return a model's input."""
    if not images:
        raise InputError("images is empty; give one image, or a list of at least one.")
    pixels = []
    for place, image in enumerate(images):
        try:
            pixels.append(preprocess(pixels_of(image, preprocessing.channels), preprocessing))
        except ImageError as error:
            raise ImageError(f"{name_of(image, place)}: {error}") from None
    return normalise(torch.stack(pixels), preprocessing)


def preprocess(pixels: Pixels, preprocessing: Preprocessing) -> NewPixels:
    """Bring an image to the model's size: resized as a whole, or one or both sides resized and the centre cut out."""
    how = preprocessing
    if how.geometry == "square" and how.crop_fraction == 1:
        return resize(pixels, how.image_size, how.interpolation, how.antialias)
    height, width = how.image_size
    resized = how.resized(pixels.shape[1], pixels.shape[2])
    top, left = how.corner(resized)
    if resized[0] * resized[1] > _WASTE * height * width:
        return resize_window(pixels, resized, (top, left, height, width), how.interpolation, how.antialias)
    whole = resize(pixels, resized, how.interpolation, how.antialias)
    return side_by_side(whole[:, top : top + height, left : left + width])


def normalise(batch: PixelBatch, preprocessing: Preprocessing) -> Images:
    """Turn pixels of 0 to 255 into a model's input, (pixel / 255 - mean) / std, as one multiplication and addition."""
    channels = len(preprocessing.mean)
    if batch.shape[1] != channels:
        raise ImageError(
            f"the images have {batch.shape[1]} channels, but the preprocessing has a mean and std for {channels}; "
            f"bring the images to {channels} channels."
        )
    scale, shift = _affine(preprocessing, batch.device)
    pixels, width = batch.permute(0, 2, 3, 1), batch.shape[3]
    if batch.device.type != "cpu" or not pixels.is_contiguous() or not batch.numel():
        return _scaled(batch, scale, shift)
    # Channels lie side by side: loops over three numbers would take eight times as long as loops over a row of pixels.
    floats = _scaled(pixels.flatten(2), scale.flatten().repeat(width), shift.flatten().repeat(width))
    return floats.view(pixels.shape).permute(0, 3, 1, 2)


def _scaled(pixels: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    """Return pixels * scale + shift, on a CPU some images at a time."""
    if pixels.device.type != "cpu" or pixels.numel() <= _CACHED:
        return torch.addcmul(shift, pixels.to(torch.float32), scale)
    floats = torch.empty(pixels.shape)
    images = max(_CACHED // pixels[0].numel(), 1)
    for some, room in zip(pixels.split(images), floats.split(images), strict=True):
        torch.addcmul(shift, some.to(torch.float32), scale, out=room)
    return floats


def standardise(values: Images, preprocessing: Preprocessing) -> Images:
    """Turn fractions from 0 to 255 into a model's input as `normalise` does, with gradients."""
    scale, shift = _affine(preprocessing, values.device)
    return torch.addcmul(shift, values, scale)


def _affine(preprocessing: Preprocessing, device: torch.device) -> tuple[Tensor, Tensor]:
    """Return what pixels are multiplied with, and what is added."""
    scale = torch.tensor([1 / (255 * std) for std in preprocessing.std], device=device)
    shift = torch.tensor(
        [-mean / std for mean, std in zip(preprocessing.mean, preprocessing.std, strict=True)], device=device
    )
    return scale[:, None, None], shift[:, None, None]
