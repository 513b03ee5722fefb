"""A trained model with everything around it: an image in, names of classes with their probabilities out."""

import logging
import os
from collections.abc import Generator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, overload

import torch

from vitrail.base.errors import ConfigError, ImageError, InputError
from vitrail.base.numbers import MOST_BATCH, MOST_WORKERS, check_whole
from vitrail.base.ranks import as_device, best_device
from vitrail.base.shapes import NewPixels, PixelBatch
from vitrail.base.table import Table
from vitrail.checkpoint.files import load
from vitrail.checkpoint.labels import class_names
from vitrail.data.classes import few
from vitrail.data.pictures import Picture, name_of, pixels_of
from vitrail.data.preprocessing import Preprocessing
from vitrail.data.transforms import preprocess
from vitrail.model.build import as_size
from vitrail.model.contract import Model
from vitrail.model.info import ModelInfo
from vitrail.model.patches import Size, size_text
from vitrail.prediction.answers import Scores, most_probable
from vitrail.prediction.network import engine_of, graph_of, usual_batch
from vitrail.prediction.prediction import Answer, Prediction
from vitrail.prediction.reading import Prepare, Prepared, in_order, read_batch
from vitrail.runtime.choice import EngineChoice, EngineName, Precision
from vitrail.runtime.engine import Engine
from vitrail.runtime.exported import is_exported
from vitrail.runtime.zeroshot import TextEmbeddings

MOST_READERS = 8
"""Threads that read for a device that computes by itself."""

_log = logging.getLogger("vitrail")


@dataclass(frozen=True, kw_only=True, eq=False)
class Classifier:
    """A model in evaluation mode, the names of its classes, and how images become its input."""

    engine: Engine
    """The network."""
    labels: tuple[str, ...]
    """The name of each class; its number where the model has no names."""
    batch: int
    """Images that go through the network at once."""
    workers: int
    """Threads: on a CPU each reads and computes, elsewhere they read."""
    notes: tuple[str, ...] = ()
    """What the user should know about the answers, a sentence each."""
    info: ModelInfo = field(default_factory=ModelInfo)
    """What goes with the weights: above all, where they come from."""

    @property
    def preprocessing(self) -> Preprocessing:
        """How an image becomes input."""
        return self.engine.preprocessing

    @property
    def digest(self) -> str:
        """What names the network."""
        return self.engine.digest

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        device: str | torch.device = "auto",
        image_size: int | Size | None = None,
        labels: Sequence[str] | str | os.PathLike[str] | None = None,
        num_heads: int | None = None,
        architecture: str | None = None,
        pickle: bool = False,
        batch: int | None = None,
        workers: int | None = None,
        engine: EngineName | None = None,
        precision: Precision | None = None,
        calibrate: str | os.PathLike[str] | None = None,
        merge_tokens: int = 0,
        text_embeddings: TextEmbeddings | str | os.PathLike[str] | None = None,
    ) -> "Classifier":
        """Read a model from a file or folder of any format that `vitrail.load` reads.

        `labels` are the names of the classes or a file of them, where the model's own are not wanted or missing; an
        `image_size` other than the model's interpolates its positions. `text_embeddings` are the classes of a CLIP
        model, or an `.npz` of them. `num_heads` and `architecture` answer what a file of another library does not
        state. `engine` and `precision` are what computes, torch by default, with images of `calibrate` for int8;
        `merge_tokens` lets each block merge that many tokens: faster, less exact.
        """
        if is_exported(path):
            choice = EngineChoice(engine=engine, precision=precision, calibrate=calibrate, merge_tokens=merge_tokens)
            graph, info = graph_of(path, choice, image_size=image_size, num_heads=num_heads, architecture=architecture)
            return cls.of(
                graph,
                labels=labels,
                batch=batch,
                workers=workers,
                text_embeddings=text_embeddings,
                called=os.fspath(path),
                info=info,
            )
        where = best_device() if str(device) == "auto" else as_device(device)
        size = None if image_size is None else as_size(image_size)
        hints: dict[str, Any] = {"image_size": size, "num_heads": num_heads, "architecture": architecture}
        answers = {name: value for name, value in hints.items() if value is not None}
        model = load(Path(path), pickle=pickle, device=where, **answers)
        return cls.of(
            model,
            labels=labels,
            batch=batch,
            workers=workers,
            engine=engine,
            precision=precision,
            calibrate=calibrate,
            merge_tokens=merge_tokens,
            text_embeddings=text_embeddings,
            called=os.fspath(path),
            owned=True,
        )

    @classmethod
    def of(
        cls,
        model: Model | Engine,
        *,
        labels: Sequence[str] | str | os.PathLike[str] | None = None,
        batch: int | None = None,
        workers: int | None = None,
        engine: EngineName | None = None,
        precision: Precision | None = None,
        calibrate: str | os.PathLike[str] | None = None,
        merge_tokens: int = 0,
        text_embeddings: TextEmbeddings | str | os.PathLike[str] | None = None,
        called: str = "the model",
        info: ModelInfo | None = None,
        owned: bool = False,
    ) -> "Classifier":
        """Put together what predicts, around a model in memory or any engine; `called` is its name in messages.

        `info` goes with an engine; a model has its own. A model that is `owned` is used by nothing else from now on:
        an engine may take its memory.
        """
        for name, number, most in (("batch", batch, MOST_BATCH), ("workers", workers, MOST_WORKERS)):
            if number is not None:
                check_whole(name, number, most=most)
        if labels is not None and text_embeddings is not None:
            raise ConfigError(
                "`text_embeddings` have names of their own, so `labels` have nothing to name; leave one out."
            )
        choice = EngineChoice(engine=engine, precision=precision, calibrate=calibrate, merge_tokens=merge_tokens)
        network, own, fresh = engine_of(model, batch, choice, text_embeddings, called, owned=owned)
        info = own if info is None else info
        if not network.num_outputs:
            raise InputError(
                f"{called} has no classes, only a representation; train a head for it first, or give another model."
            )
        names = class_names(labels, info.labels, network.num_outputs)
        if names is None:
            fresh.insert(0, "the model carries no class names, so classes are numbers; give names with `labels`.")
        for note in fresh:
            _log.warning("%s: %s", called, note)
        device = network.device
        return cls(
            engine=network,
            labels=tuple(map(str, range(network.num_outputs))) if names is None else names,
            batch=batch or usual_batch(device),
            workers=workers or (torch.get_num_threads() if device.type == "cpu" else MOST_READERS),
            notes=(*info.notes, *fresh),
            info=info,
        )

    @overload
    def predict(self, images: Picture, *, top: int = 5) -> Prediction: ...
    @overload
    def predict(self, images: list[Any] | tuple[Any, ...], *, top: int = 5) -> list[Prediction]: ...
    def predict(self, images: Picture | list[Any] | tuple[Any, ...], *, top: int = 5) -> Prediction | list[Prediction]:
        """Classify an image, or each image of a list.

        An image is a path, the bytes of a file, an image of Pillow, or an array or tensor of uint8 with the channels
        last or first. The first one that cannot be read raises an `ImageError` with its name.
        """
        items = images if isinstance(images, list | tuple) else [images]
        predictions = []
        with closing(self.answers(lambda row: self.prepare(items[row]), range(len(items)), top=top)) as answers:
            for row, answer in answers:
                name = name_of(items[row], row)
                if isinstance(answer, ImageError):
                    raise ImageError(f"{name}: {answer}")
                named = tuple((self.labels[number], probability) for number, probability in answer)
                predictions.append(Prediction(name=name, top=named))
        return predictions if isinstance(images, list | tuple) else predictions[0]

    def prepare(self, image: Picture) -> NewPixels:
        """Read an image, and bring it to the channels and the size of the model."""
        return preprocess(pixels_of(image, self.preprocessing.channels), self.preprocessing)

    def answers(self, prepare: Prepare, rows: Sequence[int], *, top: int) -> Generator[tuple[int, Answer], None, None]:
        """Answer for every image that `prepare` reads, in order; that to a broken one is what is wrong with it.

        On a CPU each worker reads and computes batches of its own, with its share of the cores: no core ever waits for
        another, as they do inside of every product of matrices that they share (docs/log.md). Elsewhere workers read,
        and this thread computes.
        """
        check_whole("top", top)
        side_by_side = self.engine.concurrent
        share = -(-len(rows) // self.workers) if side_by_side else self.batch  # few images are for all workers too
        size = max(min(self.batch, share), 1)
        chunks = (rows[start : start + size] for start in range(0, len(rows), size))

        def read(chunk: Sequence[int]) -> Prepared:
            return read_batch(prepare, chunk)

        def answer(chunk: Sequence[int]) -> list[tuple[int, Answer]]:
            return self._answer(read(chunk), top)

        if len(rows) <= size or (side_by_side and self.workers == 1):
            yield from chain.from_iterable(map(answer, chunks))
        elif side_by_side:
            cores = max(torch.get_num_threads() // self.workers, 1)
            with closing(in_order(answer, chunks, workers=self.workers, cores=cores)) as results:
                yield from chain.from_iterable(results)
        else:
            with closing(in_order(read, chunks, workers=self.workers)) as ready:
                for prepared in ready:
                    yield from self._answer(prepared, top)

    def _answer(self, prepared: Prepared, top: int) -> list[tuple[int, Answer]]:
        """Answer for one batch."""
        by_row: dict[int, Answer] = dict(prepared.broken)
        if len(prepared.pixels):
            good = (row for row in prepared.rows if row not in prepared.broken)
            by_row |= zip(good, most_probable(self.scores(prepared.pixels), top), strict=True)
        return [(row, by_row[row]) for row in prepared.rows]

    def scores(self, pixels: PixelBatch) -> Scores:
        """Return the softmax probability of every class for prepared images."""
        return self.engine.logits(pixels).cpu().double().softmax(1)

    def _repr_html_(self) -> str:
        """Show what it is, for a notebook."""
        engine, pixels = self.engine, self.preprocessing
        rows = [
            ("classes", f"{engine.num_outputs:,}: {few(self.labels)}"),
            ("images", f"{size_text(pixels.image_size)}, {pixels.geometry}, {pixels.interpolation}"),
            ("computes", f"{engine.dtype} on {engine.device}, {self.batch} images at once"),
        ]
        return Table(title="Classifier", columns=("", ""), rows=tuple(rows), notes=tuple(self.notes)).html()
