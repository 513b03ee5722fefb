"""Several data sets as one, to learn from them together."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from vitrail.base.errors import InputError
from vitrail.data.dataset import UNLABELLED, Dataset, Pictures, Rows


@dataclass(frozen=True, kw_only=True, eq=False)
class JoinedPictures:
    """The pictures of several places, counted on from one to the next."""

    parts: tuple[Pictures, ...]
    starts: Rows
    """The number of the first picture of each part."""

    @classmethod
    def of(cls, parts: Sequence[Pictures]) -> "JoinedPictures":
        """Count the pictures of each part."""
        sizes = np.array([len(part) for part in parts], dtype=np.int64)
        return cls(parts=tuple(parts), starts=np.cumsum(sizes) - sizes)

    def __len__(self) -> int:
        """Count the pictures."""
        return int(self.starts[-1]) + len(self.parts[-1])

    def place(self, row: int) -> tuple[Pictures, int]:
        """Return the part that a picture lies in, and its number there."""
        part = int(np.searchsorted(self.starts, row, side="right")) - 1
        return self.parts[part], row - int(self.starts[part])

    def name(self, row: int) -> str:
        """Return what the user calls a picture."""
        part, inside = self.place(row)
        return part.name(inside)

    def read(self, row: int) -> bytes | np.ndarray:
        """Return a picture as it lies there."""
        part, inside = self.place(row)
        return part.read(inside)

    def digest(self, rows: Rows) -> bytes:
        """Digest the pictures of each part after the other."""
        ends = np.append(self.starts[1:], len(self))
        return b"".join(
            part.digest(rows[(rows >= start) & (rows < end)] - start)
            for part, start, end in zip(self.parts, self.starts, ends, strict=True)
        )


def join_datasets(parts: Sequence[Dataset]) -> Dataset:
    """Put data sets behind each other: classes of the same name are one class, and images without one keep none."""
    if len(parts) == 1:
        return parts[0]
    first = parts[0]
    for part in parts:
        if part.channels != first.channels:
            raise InputError(
                f"{first.where} has images of {first.channels} channels and {part.where} of {part.channels}; give "
                "data of the same kind together."
            )
    labels = tuple(dict.fromkeys(label for part in parts for label in part.labels))
    pictures = JoinedPictures.of([part.pictures for part in parts])
    codes = {label: code for code, label in enumerate(labels)}
    return replace(
        first,
        pictures=pictures,
        rows=np.concatenate([part.rows + start for part, start in zip(parts, pictures.starts, strict=True)]),
        targets=np.concatenate([_codes(part, codes) for part in parts]),
        labels=labels,
        where=" + ".join(part.where for part in parts),
        skipped=tuple(image for part in parts for image in part.skipped),
        ignored=tuple(entry for part in parts for entry in part.ignored),
        notes=tuple(dict.fromkeys(note for part in parts for note in part.notes)),
    )


def _codes(part: Dataset, codes: dict[str, int]) -> Rows:
    """Return the classes of a part by their numbers in the whole."""
    table = np.array([*(codes[label] for label in part.labels), UNLABELLED], dtype=np.int64)
    return table[part.targets]  # the last entry is that of -1
