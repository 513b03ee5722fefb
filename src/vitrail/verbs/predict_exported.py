"""Classify images with an exported file, in a process that never imports torch."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from vitrail.base.errors import InputError
from vitrail.base.notes import Note
from vitrail.base.numbers import MOST_BATCH, MOST_THREADS, MOST_WORKERS, check_whole
from vitrail.base.progress import Progress
from vitrail.data.labels import read_labels
from vitrail.prediction.folder import Listing, list_images
from vitrail.prediction.graph_classifier import READERS, GraphClassifier
from vitrail.prediction.prediction import PredictionFile
from vitrail.prediction.work import Work
from vitrail.prediction.writers import Row, check_predictions
from vitrail.runtime.choice import EngineChoice
from vitrail.runtime.exported import is_exported, open_exported

BATCH = 8
"""Images that are read at once; those of the same size go through the graph together."""


@dataclass(frozen=True, kw_only=True)
class GraphSettings:
    """How an exported file becomes a classifier."""

    labels: str | None = None
    batch: int | None = None
    workers: int | None = None
    threads: int | None = None
    engine: EngineChoice = field(default_factory=EngineChoice)
    once: bool = False
    """Whether there is a single image, for which the file is opened as fast as possible."""


def runs_without_torch(model: str, **others: object) -> bool:
    """Return whether a model is an exported file that needs no torch: nothing but a graph's settings is given.

    Under torchrun ranks share the images, which is torch's work; so is preparing images for a graph that takes a
    model's own input, which shows when it is opened.
    """
    alone = "RANK" not in os.environ and "WORLD_SIZE" not in os.environ
    return is_exported(model) and alone and not any(others.values())


def open_graph(model: str, settings: GraphSettings, note: Note) -> GraphClassifier | None:
    """Open an exported file; None for one that takes a model's own input, for which torch prepares images."""
    for name, number, most in (
        ("batch", settings.batch, MOST_BATCH),
        ("workers", settings.workers, MOST_WORKERS),
        ("threads", settings.threads, MOST_THREADS),
    ):
        if number is not None:
            check_whole(name, number, most=most)
    threads = settings.threads or available_threads()
    exported = open_exported(model, settings.engine, threads=threads, once=settings.once)
    card = exported.card
    if card.entry != "image":
        return None
    if not card.num_classes:
        raise InputError(
            f"{model} has no classes, only a representation; train a head for it first, or give another model."
        )
    names = card.labels if settings.labels is None else read_labels(Path(settings.labels), card.num_classes)
    if names is None:
        note(f"{model}: the model carries no class names, so classes are numbers; give names with `labels`.")
        names = tuple(map(str, range(card.num_classes)))
    for sentence in card.notes:
        note(f"{model}: {sentence}")
    return GraphClassifier(
        exported=exported,
        labels=tuple(names),
        batch=settings.batch or BATCH,
        workers=settings.workers or READERS,
    )


def available_threads() -> int:
    """Return how many threads compute: OMP_NUM_THREADS, or one for each core that this process may use."""
    limit = os.environ.get("OMP_NUM_THREADS", "")
    if limit.isascii() and limit.isdigit() and int(limit):
        return int(limit)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def answering(
    classifier: GraphClassifier, words: Sequence[str], *, top: int, note: Note, stdin: Callable[[], bytes]
) -> Iterator[tuple[Listing, Iterator[Row]]]:
    """List the files that paths and patterns mean, and yield the answer for each, in order."""
    listing = _listed(words, stdin, note)
    answers = classifier.answers(lambda row: classifier.prepare(listing.read(row)), range(len(listing)), top=top)
    with closing(answers):
        yield listing, (Row.of(listing.name(row), answer, classifier.labels) for row, answer in answers)


def write_predictions(
    classifier: GraphClassifier,
    words: Sequence[str],
    out: str,
    *,
    top: int,
    inputs: Sequence[str | None],
    force: bool,
    progress: Progress,
    note: Note,
    stdin: Callable[[], bytes],
) -> PredictionFile | None:
    """Answer for the files that words stand for into one file."""
    path = check_predictions(out, (*inputs, *words), force=force)
    return Work(classifier=classifier, out=path, top=top).run(lambda: _listed(words, stdin, note), progress)


def _listed(words: Sequence[str], stdin: Callable[[], bytes], note: Note) -> Listing:
    listing = list_images(words, stdin)
    for sentence in listing.notes:
        note(sentence)
    return listing
