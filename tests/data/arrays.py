"""Data sets of small arrays, for tests of what comes after the sources."""

import numpy as np

from vitrail.data.dataset import Dataset


class ArrayPictures:
    """Images in memory."""

    def __init__(self, images: list[np.ndarray | bytes]) -> None:
        self.images = images

    def __len__(self) -> int:
        return len(self.images)

    def name(self, row: int) -> str:
        return f"image {row}"

    def read(self, row: int) -> np.ndarray | bytes:
        return self.images[row]

    def digest(self, rows: np.ndarray) -> bytes:
        return b"".join(bytes(self.read(row)) for row in rows.tolist())


def dataset(images: list[np.ndarray | bytes], targets: np.ndarray, *, channels: int = 3) -> Dataset:
    return Dataset(
        pictures=ArrayPictures(images),
        rows=np.arange(len(images)),
        targets=np.asarray(targets, dtype=np.int32),
        labels=tuple(f"class {at}" for at in range(int(np.max(targets, initial=-1)) + 1)),
        where="the arrays",
        channels=channels,
    )


def noise(count: int, size: tuple[int, int] = (12, 10), channels: int = 3, classes: int = 4, seed: int = 0) -> Dataset:
    rng = np.random.default_rng(seed)
    images = rng.integers(0, 256, (count, *size, channels), dtype=np.uint8)
    return dataset(list(images), np.arange(count) % classes, channels=channels)
