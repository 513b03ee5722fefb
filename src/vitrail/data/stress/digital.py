"""What files and lenses do (Hendrycks and Dietterich, 2019): contrast, elastic warps, coarse pixels, JPEG."""

import io
from collections.abc import Callable

import numpy as np
from PIL import Image

from vitrail.data.stress.draws import Draws
from vitrail.data.stress.planes import Number, Planes, sample, smooth


def contrast(planes: Planes, draws: Draws, factor: Number) -> Planes:  # noqa: ARG001 - it is fixed
    """Shrink the distance of each value from the mean of its channel."""
    means = planes.mean(axis=(1, 2), keepdims=True)
    return (planes - means) * factor + means


def elastic(planes: Planes, draws: Draws, strength: Number, sigma: Number, shift: Number) -> Planes:
    """Move three corners of a triangle by up to `shift` pixels, and every pixel along a smooth random field."""
    _, height, width = planes.shape
    rows, columns = np.meshgrid(np.arange(height, dtype=float), np.arange(width, dtype=float), indexing="ij")
    if shift:
        rows, columns = _unmoved(draws, rows, columns, shift)
        planes = sample(planes, rows, columns, "mirror")
        rows, columns = np.meshgrid(np.arange(height, dtype=float), np.arange(width, dtype=float), indexing="ij")
    if not strength:
        return planes
    field = 2 * draws.uniform("field", 2, height, width) - 1
    down, right = strength * smooth(field, sigma, truncate=3.0, border="reflect")
    return sample(planes, rows + down, columns + right, "reflect")


def _unmoved(draws: Draws, rows: np.ndarray, columns: np.ndarray, shift: Number) -> tuple[np.ndarray, np.ndarray]:
    """Return where each pixel was before an affine map moved the corners of a triangle."""
    height, width = rows.shape
    middle, side = np.array([width // 2, height // 2], float), float(max(min(height, width) // 3, 1))
    before = middle + side * np.array([[1, 1], [1, -1], [-1, -1]])
    after = before + shift * (2 * draws.uniform("corners", 3, 2) - 1)
    # Solve [x' y' 1] M = [x y], from the places after the move to those before it.
    inverse = np.linalg.solve(np.column_stack([after, np.ones(3)]), before)
    places = np.stack([columns, rows, np.ones_like(rows)], axis=-1) @ inverse
    return places[..., 1], places[..., 0]


def pixelate(planes: Planes, draws: Draws, factor: Number) -> Planes:  # noqa: ARG001 - it is fixed
    """Shrink by averaging over boxes, and enlarge again."""
    _, height, width = planes.shape
    small = max(int(width * factor), 1), max(int(height * factor), 1)
    box = Image.Resampling.BOX
    return _by_pillow(planes, lambda image: image.resize(small, box).resize((width, height), box))


def jpeg(planes: Planes, draws: Draws, quality: int) -> Planes:  # noqa: ARG001 - it is fixed
    """Write as JPEG of a quality from 1 to 95, and read again."""

    def compressed(image: Image.Image) -> Image.Image:
        file = io.BytesIO()
        image.save(file, "JPEG", quality=quality)
        return Image.open(file)

    return _by_pillow(planes, compressed)


def _by_pillow(planes: Planes, change: Callable[[Image.Image], Image.Image]) -> Planes:
    """Change colour as a whole, and other channels one by one."""
    levels = np.rint(np.clip(planes, 0, 255)).astype(np.uint8)
    if levels.shape[0] == 3:
        image = change(Image.fromarray(np.ascontiguousarray(levels.transpose(1, 2, 0)), "RGB"))
        return np.asarray(image, dtype=np.float64).transpose(2, 0, 1)
    return np.stack([np.asarray(change(Image.fromarray(channel, "L")), dtype=np.float64) for channel in levels])
