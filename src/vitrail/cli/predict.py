"""Classify images: the most probable classes of a trained model, with their probabilities.

Images are files, folders (with everything below them), quoted patterns, @LIST for a text with a path on each line, or -
for such a text from stdin; each file counts once. With --out the answers become a file, in order; stopped at any time,
the same command resumes, and under torchrun ranks share the images. An image that cannot be read is reported, has a row
with its error in the output, and stops nothing: the exit code is 1 only if none could be read.

Example: vitrail predict model.safetensors photo.jpg
Example: vitrail predict model.safetensors photos/ --out predictions.csv
"""

import gc
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from vitrail.base.errors import InputError
from vitrail.base.numbers import MANY, MOST_BATCH, MOST_WORKERS, check_whole
from vitrail.cli.engine_flags import EngineFlags, engine_choice
from vitrail.cli.flags import Positional, Switch, Weights, flag, parse_size
from vitrail.cli.say import say, show
from vitrail.cli.stopped import signal_name, signal_number
from vitrail.cli.streams import nobody_reads, read_stdin
from vitrail.prediction.writers import check_predictions

if TYPE_CHECKING:
    from vitrail.prediction.prediction import PredictionFile
    from vitrail.verbs.predict import ClassifierSettings

    Answering = Callable[..., Any]
    """Takes the words that name images, and yields the listing and the answers, as `verbs/predict.py` does."""
    Writing = Callable[..., PredictionFile | None]
    """Takes the words and the output, and writes the answers there."""


@dataclass(frozen=True, kw_only=True)
class Arguments(EngineFlags):
    """Flags of `vitrail predict`."""

    model: Annotated[str, Positional, Weights, flag("MODEL")]
    """A file or folder of weights, of any format that `vitrail show` reads, or the name of a published model."""
    images: Annotated[tuple[str, ...], Positional, flag("IMAGE-OR-FOLDER [...]")]
    """Files, folders, patterns or lists of images."""
    top: int = 5
    """How many classes to print for each image."""
    out: Annotated[str | None, flag("FILE.csv|.jsonl|.parquet", "the screen")] = None
    """Write all answers to this file."""
    force: Switch = False
    """Allow --out to replace a file that is not a table of predictions."""
    labels: Annotated[str | None, flag("FILE", "the model's own")] = None
    """Names of the classes: a line for each, or a JSON list, in the order of the model's outputs."""
    text_embeddings: Annotated[str | None, flag("FILE.npz", "none")] = None
    """For CLIP models with their projection: the classes as embeddings and names of texts, made with the text tower."""
    image_size: Annotated[str | None, flag("PIXELS|HxW", "the model's own")] = None
    """Height and width that images are brought to; positions are interpolated."""
    batch: Annotated[int | None, flag("INT", "8 on a CPU, 64 elsewhere")] = None
    """Images that go through the model at once."""
    workers: Annotated[int | None, flag("INT", "as many as --threads on a CPU, 8 elsewhere")] = None
    """Threads that work side by side: on a CPU each reads and computes, elsewhere they read and decode."""
    threads: Annotated[int | None, flag("INT", "torch's own choice")] = None
    """Threads for computing on the CPU."""
    device: Literal["auto", "cpu", "cuda", "mps"] = "auto"
    """Where to compute; auto takes a GPU if there is one."""
    pickle: Switch = False
    """Allow torch's pickled files, of which only tensors are read."""
    json: Switch = False
    """Write JSON to stdout."""


def run(arguments: Arguments) -> int:
    """Classify images, and print or write the answers."""
    out = arguments.out
    if arguments.image_size is not None:
        parse_size(arguments.image_size)
    if not arguments.images:
        raise InputError("no images are given; name files, folders, patterns, @LIST or - for stdin behind the model.")
    for name, most in (("top", MANY), ("batch", MOST_BATCH), ("workers", MOST_WORKERS)):
        if (number := getattr(arguments, name)) is not None:
            check_whole(name, number, most=most)
    if out is not None:
        read = (arguments.model, arguments.labels, arguments.text_embeddings, *arguments.images)
        check_predictions(out, read, force=arguments.force)
    return _to_screen(arguments) if out is None else _to_file(arguments, out)


def _open(arguments: Arguments) -> tuple["Answering", "Writing"]:
    """Return what answers to the screen and into a file: without torch for an exported file that needs none."""
    from vitrail.verbs.predict_exported import GraphSettings, open_graph, runs_without_torch

    others = (arguments.text_embeddings, arguments.image_size, arguments.num_heads, arguments.architecture)
    device = arguments.device not in ("auto", "cpu")
    if runs_without_torch(arguments.model, others=any(others), device=device):
        graph = open_graph(
            arguments.model,
            GraphSettings(
                labels=arguments.labels,
                batch=arguments.batch,
                workers=arguments.workers,
                threads=arguments.threads,
                engine=engine_choice(arguments),
                once=len(arguments.images) == 1 and Path(arguments.images[0]).is_file(),
            ),
            say,
        )
        if graph is not None:
            from vitrail.verbs import predict_exported as exported

            inputs = (arguments.model, arguments.labels)
            return partial(exported.answering, graph), partial(exported.write_predictions, graph, inputs=inputs)
    gc.disable()  # what imports make is there to stay; to look for garbage in it takes a tenth of the time

    from vitrail.verbs import predict

    gc.freeze()
    gc.enable()
    settings = _settings(arguments)

    def answer(words: Sequence[str], **rest: Any) -> Any:
        return predict.answering(arguments.model, words, settings, **rest)

    def write(words: Sequence[str], out: str, **rest: Any) -> Any:
        return predict.write_predictions(arguments.model, words, out, settings, **rest)

    return answer, write


def _settings(arguments: Arguments) -> "ClassifierSettings":
    from vitrail.verbs.network import FileSettings
    from vitrail.verbs.predict import ClassifierSettings

    return ClassifierSettings(
        labels=arguments.labels,
        batch=arguments.batch,
        workers=arguments.workers,
        engine=engine_choice(arguments),
        threads=arguments.threads,
        text_embeddings=arguments.text_embeddings,
        file=FileSettings(
            image_size=None if arguments.image_size is None else parse_size(arguments.image_size),
            num_heads=arguments.num_heads,
            architecture=arguments.architecture,
            pickle=arguments.pickle,
            device=arguments.device,
        ),
    )


def _to_screen(arguments: Arguments) -> int:
    """Answer to stdout: a table with bars for one image, a line for each of several, or JSON."""
    from vitrail.cli.predictions import Screen

    answering, _ = _open(arguments)
    with answering(arguments.images, top=arguments.top, note=say, stdin=read_stdin) as (listing, rows):
        screen = Screen([listing.name(row) for row in range(min(len(listing), 1000))], json=arguments.json)
        failed = 0
        for row in rows:
            if row.error is not None:
                failed += 1
                say(f"{row.path}: {row.error}")
            screen.show(row)
            if nobody_reads():
                return 0
    screen.end(arguments.model, failed)
    if 0 < failed < len(listing):
        say(f"{failed} of {len(listing)} images could not be read.")
    return int(failed == len(listing))


def _to_file(arguments: Arguments, out: str) -> int:
    """Write the answers to a file, and print a summary."""
    from vitrail.cli.progress import progress

    try:
        _, write_predictions = _open(arguments)
        outcome = write_predictions(
            arguments.images,
            out,
            top=arguments.top,
            force=arguments.force,
            progress=progress,
            note=say,
            stdin=read_stdin,
        )
    except KeyboardInterrupt as stop:
        number = signal_number(stop)
        if os.environ.get("RANK", "0") == "0":
            say(f"stopped by {signal_name(number)}; what was answered is kept, and the same command resumes.")
        return 128 + number
    if outcome is None:
        return 0
    for name, reason in outcome.failures:
        say(f"{name}: {reason}")
    if outcome.failed:
        say(f"{outcome.failed} of {outcome.images} images could not be read; their rows in {out} have the error.")
    _print(outcome, arguments)
    return int(outcome.failed == outcome.images)


def _print(outcome: "PredictionFile", arguments: Arguments) -> None:
    if arguments.json:
        from vitrail.cli.report import print_json

        print_json(outcome.to_dict())
        return
    if outcome.before:
        show(f"{outcome.before} of {outcome.images} answers were there from before.")
    named = [f"{label} {count}" for label, count in list(outcome.labels.items())[:10]]
    more = [f"{len(outcome.labels) - 10} other classes"] if len(outcome.labels) > 10 else []
    show(f"{outcome.images} images in {outcome.out}: {', '.join(named + more) or 'no answers'}")
