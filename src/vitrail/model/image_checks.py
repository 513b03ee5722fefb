"""Refusals of images that do not fit a model."""

from vitrail.base.errors import InputError
from vitrail.base.shapes import Images
from vitrail.model.patches import Size, size_text


def check_images(images: Images, channels: int, image_size: Size | None) -> None:
    """Refuse images that do not fit the model; without `image_size` any size is allowed."""
    if images.ndim != 4:
        raise InputError(
            f"images have the shape {tuple(images.shape)}, but the model needs (batch, {channels}, height, width); "
            "for one image add a batch axis with images[None]."
        )
    if not images.is_floating_point():
        raise InputError(
            f"images are {images.dtype}, but the model needs floating point in its own pixel range; "
            "convert 8-bit pixels with images.float() / 127.5 - 1 for a range of [-1, 1]."
        )
    if images.shape[1] != channels:
        raise InputError(
            f"images of the shape {tuple(images.shape)} have {images.shape[1]} channels, but {channels} are needed; "
            f"pass (batch, {channels}, height, width), or create the model with channels={images.shape[1]}."
        )
    size = (images.shape[2], images.shape[3])
    if image_size is not None and size != image_size:
        raise InputError(
            f"images are {size_text(size)}, but the model was made for {size_text(image_size)}; "
            f"resize the images or create the model with image_size={size}."
        )
