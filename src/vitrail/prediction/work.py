"""A folder of any size: answered in batches, by any number of ranks, resuming after a kill, each image exactly once."""

import time
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Int

from vitrail.base.errors import InputError, VitrailError
from vitrail.base.progress import Progress, silent
from vitrail.data.preprocessing import Preprocessing
from vitrail.prediction.folder import Listing
from vitrail.prediction.parts import Job, Notebook, Parts, Table
from vitrail.prediction.prediction import Answer, PredictionFile
from vitrail.prediction.writers import Row, write_rows

SHOWN = 10
"""Failures that are named in messages; all of them are in the output."""


@runtime_checkable
class Answering(Protocol):
    """What answers for images: a `Classifier`, or a graph without torch."""

    @property
    def labels(self) -> tuple[str, ...]:
        """The name of each class."""

    @property
    def batch(self) -> int:
        """Images that go through the network at once."""

    @property
    def preprocessing(self) -> Preprocessing:
        """How an image becomes input."""

    @property
    def digest(self) -> str:
        """What names the network."""

    def prepare(self, image: Any) -> Any:
        """Read an image."""

    def answers(self, prepare: Any, rows: Sequence[int], *, top: int) -> Generator[tuple[int, Answer], None, None]:
        """Answer for every image that `prepare` reads, in order."""


@dataclass(frozen=True, kw_only=True)
class Alone:
    """One process that shares its work with no other; the part of `Ranks` that needs no torch."""

    rank: int = 0
    world: int = 1
    first: bool = True

    def any(self, flag: bool) -> bool:
        """Return the flag."""
        return flag

    def agree(self, number: int) -> int:
        """Return the number."""
        return number


ALONE = Alone()


@dataclass(frozen=True, kw_only=True, eq=False)
class Work:
    """Answers for a list of files, into one output."""

    classifier: Answering
    out: Path
    top: int
    ranks: Any = ALONE
    """The processes that share the work, as `base/ranks.py` has them."""

    def run(self, list_files: Callable[[], Listing], progress: Progress = silent) -> PredictionFile | None:
        """Do this rank's share of what is not done yet; the first rank writes the output and reports it.

        Only the first rank lists the files and prepares the folder of parts; if it cannot, it raises, and the others
        return without a word.
        """
        parts = Parts.beside(self.out)
        with ExitStack() as stack:
            listing, job, problem = None, None, None
            if self.ranks.first:
                try:
                    listing = list_files()
                    stack.enter_context(parts.claimed())
                    job = self._job(listing)
                    parts.enter(job, listing, alone=self.ranks.world == 1)
                except VitrailError as error:
                    problem = error
            if self.ranks.any(problem is not None):
                if problem is not None:
                    raise problem
                return None
            listing = parts.listing() if listing is None else listing
            pending = self._pending(parts, job, len(listing))
            start = self.ranks.agree(time.time_ns())
            self._answer(listing, pending[self.ranks.rank :: self.ranks.world], parts, start, progress)
            if job is None:
                return None
            parts.wait(start, self.ranks.world)
            outcome = self._finish(listing, job, parts, before=len(listing) - len(pending))
            parts.remove()
            return outcome

    def _job(self, listing: Listing) -> Job:
        return Job(
            model=self.classifier.digest,
            files=listing.digest,
            images=len(listing),
            top=min(self.top, len(self.classifier.labels)),
            preprocessing=self.classifier.preprocessing,
        )

    def _pending(self, parts: Parts, job: Job | None, images: int) -> Int[np.ndarray, "pending"]:
        """Return the images without an answer, as the first rank knows them; broken ones are tried again."""
        done = np.zeros(images, np.int32)
        if job is not None:
            table = parts.read(job, len(self.classifier.labels))
            table.done[list(table.errors)] = False
            done += table.done
        if self.ranks.world > 1:
            import torch

            done = self.ranks.sum(torch.from_numpy(done).to(self.ranks.device)).cpu().numpy()
        return np.flatnonzero(done == 0)

    def _answer(
        self, listing: Listing, rows: Int[np.ndarray, "share"], parts: Parts, start: int, progress: Progress
    ) -> None:
        """Answer for some images, and note the answers batch by batch."""
        answers = self.classifier.answers(
            lambda row: self.classifier.prepare(listing.read(row)), rows.tolist(), top=self.top
        )
        waiting: list[tuple[int, Answer]] = []
        with closing(answers), Notebook(parts, start, self.ranks.rank) as notebook:
            for answer in progress(answers, total=len(rows), title="predicting"):
                waiting.append(answer)
                if len(waiting) >= self.classifier.batch:
                    notebook.write(waiting)
                    waiting.clear()
            notebook.write(waiting)

    def _finish(self, listing: Listing, job: Job, parts: Parts, *, before: int) -> PredictionFile:
        """Write the output, and count."""
        table = parts.read(job, len(self.classifier.labels))
        if missing := int((~table.done).sum()):
            raise InputError(
                f"{missing} of {job.images} images have no answer although every rank is done; all ranks must see the "
                "folder of `out`. The same command resumes."
            )
        labels = self.classifier.labels
        rows = (Row.of(listing.name(row), table.answer(row), labels) for row in range(job.images))
        write_rows(self.out, rows, top=job.top)
        failed = sorted(table.errors)
        return PredictionFile(
            out=self.out,
            images=job.images,
            before=before,
            failed=len(failed),
            failures=tuple((listing.name(row), table.errors[row]) for row in failed[:SHOWN]),
            labels=_counts(table, labels),
        )


def _counts(table: Table, labels: tuple[str, ...]) -> dict[str, int]:
    """Count the images of each answer; classes of the same name count together."""
    good = np.ones(len(table.done), bool)
    good[list(table.errors)] = False
    counts: dict[str, int] = {}
    for number, count in enumerate(np.bincount(table.classes[good, 0], minlength=len(labels)).tolist()):
        counts[labels[number]] = counts.get(labels[number], 0) + count
    return dict(sorted(((label, count) for label, count in counts.items() if count), key=lambda item: -item[1]))
