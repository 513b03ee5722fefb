"""A folder of any size: answered in batches, by any number of ranks, resuming after a kill, each image exactly once."""

import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Int

from vitrail.base.errors import InputError, VitrailError
from vitrail.base.progress import Progress, silent
from vitrail.base.ranks import Ranks
from vitrail.prediction.answers import Answer
from vitrail.prediction.classifier import Classifier
from vitrail.prediction.folder import Listing
from vitrail.prediction.parts import Job, Notebook, Parts, Table
from vitrail.prediction.writers import Row, write_rows

SHOWN = 10
"""Failures that are named in messages; all of them are in the output."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What came out of the work."""

    out: Path
    """The file with all the answers."""
    images: int
    """How many rows it has."""
    before: int
    """How many of them were answered by an earlier start."""
    failed: int
    """How many images could not be read."""
    failures: tuple[tuple[str, str], ...]
    """The first of these, and why."""
    labels: dict[str, int]
    """How many images each class was answered for, the most frequent first."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Work:
    """Answers for a list of files, into one output."""

    classifier: Classifier
    out: Path
    top: int
    ranks: Ranks

    def run(self, list_files: Callable[[], Listing], progress: Progress = silent) -> Outcome | None:
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
                    parts.enter(job, listing)
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
            model=self.classifier.engine.digest,
            files=listing.digest,
            images=len(listing),
            top=min(self.top, len(self.classifier.labels)),
            preprocessing=self.classifier.preprocessing,
        )

    def _pending(self, parts: Parts, job: Job | None, images: int) -> Int[np.ndarray, "pending"]:
        """Return the images without an answer, as the first rank knows them; broken ones are tried again."""
        done = torch.zeros(images, dtype=torch.int32)
        if job is not None:
            table = parts.read(job, len(self.classifier.labels))
            table.done[list(table.errors)] = False
            done += torch.from_numpy(table.done)
        return np.flatnonzero(self.ranks.sum(done.to(self.ranks.device)).cpu().numpy() == 0)

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

    def _finish(self, listing: Listing, job: Job, parts: Parts, *, before: int) -> Outcome:
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
        return Outcome(
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
