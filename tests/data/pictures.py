"""Pictures for tests: made from nothing, and data sets that hold them."""

import io
from collections.abc import Sequence

import numpy as np
from PIL import Image, ImageFilter

from vitrail.data.dataset import Dataset


class Listed:
    """Pictures in a list: files as bytes, or arrays; a string stands for a file that the system refuses."""

    def __init__(self, found: Sequence[bytes | np.ndarray | str]) -> None:
        self.found = found

    def __len__(self) -> int:
        return len(self.found)

    def name(self, row: int) -> str:
        return f"picture {row}"

    def read(self, row: int) -> bytes | np.ndarray:
        found = self.found[row]
        if isinstance(found, str):
            raise OSError(5, found)
        return found

    def digest(self, rows: np.ndarray) -> bytes:
        return b"".join(bytes(self.read(row)) for row in rows.tolist())


def dataset(found: Sequence[bytes | np.ndarray | str], targets: Sequence[int], **fields) -> Dataset:
    labels = fields.pop("labels", tuple(f"class {number}" for number in range(max(targets, default=-1) + 1)))
    return Dataset(
        pictures=Listed(found),
        rows=np.arange(len(found)),
        targets=np.array(targets, dtype=np.int64),
        labels=labels,
        where=fields.pop("where", "pictures"),
        **fields,
    )


def photo(seed: int, width: int = 160, height: int = 120) -> Image.Image:
    """A scene of blurred noise at several scales, as lively as a photo."""
    random = np.random.default_rng(seed)
    scene = np.zeros((height, width, 3), dtype=np.float32)
    for cells, weight in ((3, 1.0), (7, 0.8), (15, 0.5), (40, 0.25)):
        noise = Image.fromarray(random.integers(0, 256, (cells, cells + 1, 3), dtype=np.uint8))
        scene += weight * np.asarray(noise.resize((width, height), Image.Resampling.BICUBIC), dtype=np.float32)
    scene = (scene - scene.min()) / (scene.max() - scene.min()) * 255
    return Image.fromarray(scene.astype(np.uint8)).filter(ImageFilter.GaussianBlur(0.5))


def encoded(image: Image.Image, form: str = "PNG", **options) -> bytes:
    file = io.BytesIO()
    image.save(file, form, **options)
    return file.getvalue()
