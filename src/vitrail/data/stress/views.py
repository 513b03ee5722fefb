"""The same scene seen otherwise: turned, from nearer or further, in more or less light."""

import numpy as np
import torch

from vitrail.base.shapes import Pixels
from vitrail.data.pixels.resize import resize
from vitrail.data.stress.planes import pixels_of_planes, planes_of, sample


def rotate(pixels: Pixels, degrees: float) -> Pixels:
    """Turn around the middle, anticlockwise; corners that would be empty are filled by reflection."""
    _, height, width = pixels.shape
    down, right = (height - 1) / 2, (width - 1) / 2
    rows, columns = np.meshgrid(np.arange(height) - down, np.arange(width) - right, indexing="ij")
    cosine, sine = _turned(degrees)
    return pixels_of_planes(
        sample(
            planes_of(pixels), cosine * rows + sine * columns + down, cosine * columns - sine * rows + right, "reflect"
        )
    )


def zoom(pixels: Pixels, factor: float, colour: tuple[int, ...]) -> Pixels:
    """Magnify the middle, or shrink the image into the middle of one colour."""
    _, height, width = pixels.shape
    if factor >= 1:
        tall, wide = max(round(height / factor), 1), max(round(width / factor), 1)
        top, left = (height - tall) // 2, (width - wide) // 2
        return resize(pixels[:, top : top + tall, left : left + wide], (height, width))
    tall, wide = max(round(height * factor), 1), max(round(width * factor), 1)
    top, left = (height - tall) // 2, (width - wide) // 2
    small = torch.tensor(colour, dtype=torch.uint8)[:, None, None].repeat(1, height, width)
    small[:, top : top + tall, left : left + wide] = resize(pixels, (tall, wide))
    return small


def expose(pixels: Pixels, factor: float) -> Pixels:
    """Multiply every value, as a longer or shorter exposure does; what is above 255 is lost."""
    return pixels_of_planes(planes_of(pixels) * factor)


def _turned(degrees: float) -> tuple[float, float]:
    """Return cosine and sine, exact for quarter turns."""
    if degrees % 90 == 0:
        return ((1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0))[int(degrees // 90) % 4]
    return float(np.cos(np.deg2rad(degrees))), float(np.sin(np.deg2rad(degrees)))
