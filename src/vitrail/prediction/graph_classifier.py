"""An exported graph as a classifier: images in, names and probabilities out; imports no torch.

The graph takes whole images, so that nothing is resized here: images of the same size go through it together.
"""

from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import chain

import numpy as np

from vitrail.base.errors import ImageError
from vitrail.base.numbers import check_whole
from vitrail.data.pixels.colours import array_to_channels
from vitrail.data.pixels.encoded import decode_array
from vitrail.data.pixels.orientation import PixelArray
from vitrail.data.preprocessing import Preprocessing
from vitrail.prediction.order import by_threads
from vitrail.prediction.prediction import Answer, rounded
from vitrail.runtime.exported import Exported

Prepare = Callable[[int], PixelArray]
"""Reads one image, by number."""
READERS = 2
"""Threads that read and decode while the graph computes with its own."""


@dataclass(frozen=True, kw_only=True, eq=False)
class GraphClassifier:
    """A graph with the names of its classes."""

    exported: Exported
    labels: tuple[str, ...]
    batch: int
    workers: int = READERS

    @property
    def preprocessing(self) -> Preprocessing:
        """How an image becomes input, inside the graph."""
        return self.exported.card.preprocessing

    @property
    def digest(self) -> str:
        """What names the graph and the runtime."""
        session = self.exported.session
        return f"{self.exported.digest} {session.name} {session.version}"

    def prepare(self, image: bytes) -> PixelArray:
        """Decode an image file, and bring it to the channels of the model."""
        return array_to_channels(decode_array(image), self.preprocessing.channels)

    def answers(self, prepare: Prepare, rows: Sequence[int], *, top: int) -> Generator[tuple[int, Answer], None, None]:
        """Answer for every image that `prepare` reads, in order; that to a broken one is what is wrong with it."""
        check_whole("top", top)
        chunks = (rows[start : start + self.batch] for start in range(0, len(rows), self.batch))

        def read(chunk: Sequence[int]) -> list[tuple[int, PixelArray | ImageError]]:
            return [(row, _read(prepare, row)) for row in chunk]

        if len(rows) <= self.batch:
            yield from chain.from_iterable(self._answer(read(chunk), top) for chunk in chunks)
            return
        with closing(by_threads(read, chunks, workers=self.workers)) as ready:
            for pictures in ready:
                yield from self._answer(pictures, top)

    def _answer(self, pictures: list[tuple[int, PixelArray | ImageError]], top: int) -> list[tuple[int, Answer]]:
        """Answer for some images; those of the same size together."""
        answers: dict[int, Answer] = {}
        groups: dict[tuple[int, ...], list[tuple[int, PixelArray]]] = {}
        for row, picture in pictures:
            if isinstance(picture, ImageError):
                answers[row] = picture
            else:
                groups.setdefault(picture.shape, []).append((row, picture))
        for group in groups.values():
            images = np.stack([picture for _, picture in group])
            (logits,) = self.exported.session.run(images, [self.exported.names["logits"]])
            answers |= zip((row for row, _ in group), most_probable(np.asarray(logits), top), strict=True)
        return [(row, answers[row]) for row, _ in pictures]


def _read(prepare: Prepare, row: int) -> PixelArray | ImageError:
    try:
        return prepare(row)
    except ImageError as error:
        return error


def most_probable(logits: np.ndarray, top: int) -> Iterable[Answer]:
    """Return the `top` classes of each image, the most probable first; of equal ones, the one that comes first."""
    wide = logits.astype(np.float64)
    powers = np.exp(wide - wide.max(axis=1, keepdims=True))
    for scores in powers / powers.sum(axis=1, keepdims=True):
        if not np.isfinite(scores).all():
            yield ImageError("the model's scores for it are not finite; `vitrail verify` checks its weights.")
            continue
        order = np.argsort(-scores, kind="stable")[:top].tolist()
        yield tuple((number, rounded(float(scores[number]))) for number in order)
