"""Classify images: one photo, a list, or a folder of any size, into a list or into a file."""

import logging
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch

from vitrail.base.errors import ConfigError
from vitrail.base.memory import keep_freed_memory
from vitrail.base.notes import Note, logged
from vitrail.base.numbers import check_whole
from vitrail.base.progress import Progress, silent
from vitrail.base.ranks import Ranks
from vitrail.data.pictures import Picture
from vitrail.model.patches import Size
from vitrail.prediction.classifier import Classifier
from vitrail.prediction.folder import Listing
from vitrail.prediction.prediction import Prediction, PredictionFile
from vitrail.prediction.work import Work
from vitrail.prediction.writers import Row, check_predictions
from vitrail.runtime.choice import EngineChoice, EngineName, Precision
from vitrail.runtime.engine import Engine
from vitrail.runtime.zeroshot import TextEmbeddings
from vitrail.verbs.computing import computing
from vitrail.verbs.images import is_many, list_words
from vitrail.verbs.network import FileSettings, ModelLike, evaluating

File = str | os.PathLike[str]


@dataclass(frozen=True, kw_only=True)
class ClassifierSettings:
    """How a model becomes a classifier; one that is a classifier already takes none of these."""

    labels: Sequence[str] | File | None = None
    batch: int | None = None
    workers: int | None = None
    engine: EngineChoice = field(default_factory=EngineChoice)
    threads: int | None = None
    text_embeddings: TextEmbeddings | File | None = None
    file: FileSettings = field(default_factory=FileSettings)


def predict(
    model: ModelLike,
    images: Picture | list[Any] | tuple[Any, ...],
    *,
    top: int = 5,
    out: File | None = None,
    force: bool = False,
    labels: Sequence[str] | File | None = None,
    text_embeddings: TextEmbeddings | File | None = None,
    image_size: int | Size | None = None,
    num_heads: int | None = None,
    architecture: str | None = None,
    batch: int | None = None,
    workers: int | None = None,
    threads: int | None = None,
    device: str | torch.device = "auto",
    engine: EngineName | None = None,
    precision: Precision | None = None,
    calibrate: File | None = None,
    merge_tokens: int = 0,
    pickle: bool = False,
    progress: Progress = silent,
    note: Note = logged,
) -> Prediction | list[Prediction] | PredictionFile | None:
    """Return the most probable classes of one image, of each image of a list, or of a whole folder.

        >>> model = vitrail.create("Ti/16", num_classes=2, image_size=32, seed=0)
        >>> photo = numpy.zeros((40, 60, 3), numpy.uint8)
        >>> vitrail.predict(model, photo, labels=["ant", "bee"]).top
        (('ant', 0.5), ('bee', 0.5))
        >>> [answer.name for answer in vitrail.predict(model, [photo, photo], labels=["ant", "bee"])]
        ['image 0', 'image 1']

    `model` is a file of any format, a model in memory, a `Classifier`, or any engine. An image is a path, the bytes of
    a file, a Pillow image, or an array or tensor of uint8; one image gives a `Prediction`, a list gives a list, and the
    first one that cannot be read raises an `ImageError`. A path may also name a folder, a pattern, or `@LIST`, a text
    with a path on each line: these give a list, without the images that could not be read, which are noted.

    `text_embeddings` are the classes of a CLIP model with its projection: an `.npz` with `embeddings` and `names`.
    `engine` is what computes: torch (the default), `compiled`, `native`, `onnxruntime`, `openvino`, or `auto` for the
    fastest on this machine; `precision` is float32, bfloat16 or int8, for which images of `calibrate` show the range of
    layers, but in `native`.
    `merge_tokens` lets each block merge that many tokens into others: faster, less exact.

    With `out`, which ends in `.csv`, `.jsonl` or `.parquet`, the answers for any number of paths are written to that
    file, and a summary is returned; a file of another kind is replaced only with `force`. Stopped at any time, the same
    call resumes; under torchrun ranks share the images, and the first one returns the summary.
    """
    file = FileSettings(
        image_size=image_size, num_heads=num_heads, architecture=architecture, pickle=pickle, device=device
    )
    settings = ClassifierSettings(
        labels=labels,
        batch=batch,
        workers=workers,
        engine=EngineChoice(engine=engine, precision=precision, calibrate=calibrate, merge_tokens=merge_tokens),
        threads=threads,
        text_embeddings=text_embeddings,
        file=file,
    )
    check_whole("top", top)
    words = list(images) if isinstance(images, list | tuple) else [images]
    paths = [os.fspath(word) for word in words if isinstance(word, str | os.PathLike)]
    if out is not None:
        if len(paths) < len(words):
            raise ConfigError("images must be paths of files and folders when `out` is set; leave it out for others.")
        return write_predictions(model, paths, out, settings, top=top, force=force, progress=progress, note=note)
    if len(paths) == len(words) and any(map(is_many, paths)):
        with answering(model, paths, settings, top=top, note=note) as (_, rows):
            return [Prediction(name=row.path, top=row.top) for row in _good(rows, note)]
    with open_classifier(model, settings, note) as (classifier, _):
        return classifier.predict(images, top=top)


@contextmanager
def answering(
    model: ModelLike,
    words: Sequence[str],
    settings: ClassifierSettings,
    *,
    top: int,
    note: Note,
    stdin: Callable[[], bytes] = bytes,
) -> Iterator[tuple[Listing, Iterator[Row]]]:
    """List the files that paths and patterns mean, and yield the answer for each, in order."""
    with open_classifier(model, settings, note) as (classifier, ranks):
        if ranks.world > 1:
            raise ConfigError("several ranks answer into one file; name it with `out`.")
        listing = list_words(words, stdin, note)
        answers = classifier.answers(lambda row: classifier.prepare(listing.read(row)), range(len(listing)), top=top)
        with closing(answers):
            yield listing, (Row.of(listing.name(row), answer, classifier.labels) for row, answer in answers)


def write_predictions(
    model: ModelLike,
    words: Sequence[str],
    out: File,
    settings: ClassifierSettings,
    *,
    top: int,
    force: bool = False,
    progress: Progress,
    note: Note,
    stdin: Callable[[], bytes] = bytes,
) -> PredictionFile | None:
    """Answer for the files that words stand for into one file; only the first rank returns what came out."""
    path = check_predictions(out, (model, settings.labels, settings.text_embeddings, *words), force=force)
    with open_classifier(model, settings, note) as (classifier, ranks):
        work = Work(classifier=classifier, out=path, top=top, ranks=ranks)
        return work.run(lambda: list_words(words, stdin, note), progress if ranks.first else silent)


@contextmanager
def open_classifier(model: ModelLike, settings: ClassifierSettings, note: Note) -> Iterator[tuple[Classifier, Ranks]]:
    """Make a classifier of a model, together with the ranks that compute with it; a model in memory stays as it was."""
    keep_freed_memory()
    own: dict[str, Any] = {
        "labels": settings.labels,
        "batch": settings.batch,
        "workers": settings.workers,
        "text_embeddings": settings.text_embeddings,
    }
    if isinstance(model, str | os.PathLike):
        with computing(settings.threads, settings.file.device, note) as ranks:
            if not ranks.first:
                logging.getLogger("vitrail").setLevel(logging.ERROR)  # the first rank reports for all
            yield (
                Classifier.load(
                    model,
                    device=ranks.device,
                    pickle=settings.file.pickle,
                    **vars(settings.engine),
                    **settings.file.overrides,
                    **own,
                ),
                ranks,
            )
        return
    if isinstance(model, Classifier):
        if settings.engine.given or any(value is not None for value in own.values()):
            raise ConfigError(
                "labels, batch, workers, engine, precision and text_embeddings are a classifier's own; give them when "
                "making it."
            )
        settings.file.check(model.engine.device)
        with computing(settings.threads, model.engine.device, note) as ranks:
            yield model, ranks
        return
    if isinstance(model, Engine):
        settings.file.check(model.device)
        with computing(settings.threads, model.device, note) as ranks:
            yield Classifier.of(model, **vars(settings.engine), **own), ranks
        return
    device = next(model.parameters()).device
    settings.file.check(device)
    with evaluating(model), computing(settings.threads, device, note) as ranks:
        yield Classifier.of(model, **vars(settings.engine), **own), ranks


def _good(rows: Iterator[Row], note: Note) -> Iterator[Row]:
    """Pass on the rows with an answer, and note the others."""
    for row in rows:
        if row.error is None:
            yield row
        else:
            note(f"{row.path}: {row.error}")
