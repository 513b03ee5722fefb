"""Work that survives a kill: answers are kept in a folder beside the output until all of them are there.

    predictions.csv.parts/
        job.json                   what the answers belong to: the model, the files, the settings
        files.index                the files, for other ranks
        <start>-<rank>.jsonl       answers of one process, a line each: [row, [[class, probability], ...], checksum]
                                   or [row, reason, checksum]
        <start>-<rank>.done.jsonl  the same, when the process has answered everything that was its share
        lock                       held while somebody works here

Each start of each process writes a file of its own, in lines that a kill can only cut short at the end. A process that
resumes, with any number of ranks, reads what is there and answers the rest; each image counts once, because it has one
row.
"""

import json
import os
import shutil
import time
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from jaxtyping import Bool, Float, Int

from vitrail.base.errors import ConfigError, ImageError, InputError, WriteError
from vitrail.base.files import atomic_write, hold
from vitrail.base.settings import from_dict, to_dict
from vitrail.data.preprocessing import Preprocessing
from vitrail.prediction.folder import Listing
from vitrail.prediction.prediction import Answer

SYNC = 10.0
"""Seconds between two moments at which answers surely are on the disk."""
_WORDS = {"model": "the model is another one", "files": "the list of files is another one"}


@dataclass(frozen=True, kw_only=True)
class Job:
    """What answers belong to; answers of one job are of no use to another."""

    model: str
    """The digest of the weights."""
    files: str
    """The digest of the list of files."""
    images: int
    """How many there are."""
    top: int
    """Classes that are kept for each."""
    preprocessing: Preprocessing
    """How images become input."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Table:
    """The answers so far, by row."""

    done: Bool[np.ndarray, "image"]
    """Which images have an answer."""
    classes: Int[np.ndarray, "image top"]
    """The most probable classes."""
    probabilities: Float[np.ndarray, "image top"]
    """Their probabilities."""
    errors: dict[int, str]
    """Why some images have none."""

    def answer(self, row: int) -> Answer:
        """Return the answer for one image."""
        if row in self.errors:
            return ImageError(self.errors[row])
        return tuple(zip(self.classes[row].tolist(), self.probabilities[row].tolist(), strict=True))


@dataclass(frozen=True, kw_only=True)
class Parts:
    """The folder of one job."""

    folder: Path

    @classmethod
    def beside(cls, out: Path) -> "Parts":
        """Return the folder that belongs to an output."""
        return cls(folder=out.with_name(f"{out.name}.parts"))

    @property
    def _job(self) -> Path:
        return self.folder / "job.json"

    @property
    def _files(self) -> Path:
        return self.folder / "files.index"

    @contextmanager
    def claimed(self) -> Iterator[None]:
        """Make the folder, and keep other processes out of it."""
        try:
            self.folder.mkdir(exist_ok=True)
        except OSError as error:
            raise WriteError(
                f"{self.folder} could not be made: {error.strerror or error}; give another `out`."
            ) from None
        with hold(self.folder / "lock"):
            yield

    def enter(self, job: Job, listing: Listing, *, alone: bool = False) -> None:
        """Start a job, or resume the same; a folder of another job, or of anything else, is refused.

        The list of files is for other ranks, where there are any.
        """
        if self._job.exists():
            self._check(job)
        elif any(entry.name != "lock" and not entry.name.endswith(".part") for entry in self.folder.iterdir()):
            raise InputError(f"{self.folder} exists and does not hold parts of predictions; give another `out`.")
        with atomic_write(self._job) as file:
            file.write((json.dumps(to_dict(job), indent=2) + "\n").encode())
        if not alone:
            listing.save(self._files)

    def _check(self, job: Job) -> None:
        try:
            there = from_dict(Job, json.loads(self._job.read_bytes()), where=f"the settings in {self._job}")
        except (OSError, ValueError, RecursionError, ConfigError) as error:
            raise InputError(f"{self._job} cannot be read ({error}); remove {self.folder} to start again.") from None
        changes = [
            _WORDS.get(field.name) or f"{field.name} is {_text(getattr(job, field.name))} here and {_text(other)} there"
            for field in fields(job)
            if getattr(job, field.name) != (other := getattr(there, field.name))
        ]
        if changes:
            raise InputError(
                f"{self.folder} holds answers of other work, so it cannot be resumed: {'; '.join(changes)}. Give "
                "the same command to resume, another `out`, or remove that folder."
            )

    def listing(self) -> Listing:
        """Return the list that the first rank has made."""
        if not self._files.is_file():
            raise InputError(f"there is no {self._files}; all ranks must see the folder of `out`.")
        return Listing.open(self._files)

    def read(self, job: Job, classes: int) -> Table:
        """Gather the answers that are there, of a model of some classes."""
        table = Table(
            done=np.zeros(job.images, bool),
            classes=np.zeros((job.images, job.top), np.int32),
            probabilities=np.zeros((job.images, job.top)),
            errors={},
        )
        for path in sorted(self.folder.glob("*.jsonl")):
            try:
                with path.open("rb") as file:
                    _fill(table, file, classes)
            except OSError as error:
                raise InputError(
                    f"{path} cannot be read ({error.strerror or error}); remove {self.folder} to start again."
                ) from None
        return table

    def wait(self, start: int, world: int) -> None:
        """Wait until every rank has said that its share is done; if one dies, torchrun ends this one too."""
        waiting = [self.folder / f"{start}-{rank}.done.jsonl" for rank in range(world)]
        while waiting := [path for path in waiting if not path.exists()]:
            time.sleep(0.2)

    def remove(self) -> None:
        """Remove everything; the output is there."""
        shutil.rmtree(self.folder, ignore_errors=True)


class Notebook:
    """The answers of one process, appended as they come; leaving it without an error marks them as complete."""

    def __init__(self, parts: Parts, start: int, rank: int) -> None:
        self.path = parts.folder / f"{start}-{rank}.jsonl"
        self.synced = time.monotonic()

    def __enter__(self) -> "Notebook":
        """Open the file."""
        try:
            self.file = self.path.open("xb")
        except OSError as error:
            raise self._failed(error) from None
        return self

    def write(self, answers: Iterable[tuple[int, Answer]]) -> None:
        """Append answers; they survive the end of this process at once, and a power cut after ten seconds."""
        lines = (_line(row, str(answer) if isinstance(answer, ImageError) else answer) for row, answer in answers)
        try:
            self.file.write("".join(lines).encode())
            self.file.flush()
            if time.monotonic() - self.synced > SYNC:
                os.fsync(self.file.fileno())
                self.synced = time.monotonic()
        except OSError as error:
            raise self._failed(error) from None

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Close the file, and give it the name of a complete one."""
        with suppress(OSError) if kind else nullcontext():
            self.file.close()
        if kind is None:
            self.path.rename(self.path.with_suffix(".done.jsonl"))

    def _failed(self, error: OSError) -> WriteError:
        return WriteError(
            f"{self.path} could not be written: {error.strerror or error}; what was answered before is kept, and the "
            "same command resumes from there."
        )


def _line(row: int, answer: Any) -> str:
    """Write an answer with a checksum, by which a line shows that it is whole."""
    text = json.dumps([row, answer])
    return f"{text[:-1]}, {zlib.crc32(text.encode())}]\n"


def _fill(table: Table, file: BinaryIO, classes: int) -> None:
    """Put the lines of one process into the table; one that a kill cut off, or that is damaged, is answered again."""
    for line in file:
        try:
            row, answer, _ = json.loads(line)
        except (ValueError, TypeError, RecursionError):
            continue
        if type(row) is not int or _line(row, answer).encode() != line or not 0 <= row < len(table.done):
            continue
        if isinstance(answer, str):
            table.errors[row] = answer
        elif not _is_answer(answer, table.classes.shape[1], classes):
            continue
        else:
            table.classes[row], table.probabilities[row] = zip(*answer, strict=True)
            table.errors.pop(row, None)
        table.done[row] = True


def _is_answer(answer: Any, top: int, classes: int) -> bool:
    """Return whether a line holds the most probable classes and their probabilities."""
    pairs = isinstance(answer, list) and all(isinstance(pair, list) and len(pair) == 2 for pair in answer)
    return pairs and len(answer) == top and all(_is_pair(one, share, classes) for one, share in answer)


def _is_pair(one: Any, share: Any, classes: int) -> bool:
    # rounding may leave a little more than 1
    return type(one) is int and 0 <= one < classes and isinstance(share, int | float) and 0 <= share < 2


def _text(value: Any) -> str:
    return json.dumps(to_dict(value)) if isinstance(value, Preprocessing) else str(value)
