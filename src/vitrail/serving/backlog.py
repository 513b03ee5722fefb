"""The work that waits, and what a free worker does next.

Images are decoded first and batched afterwards: a broken one never reaches a batch. A free worker takes a full batch
first, then decodes: small images together, a large one alone. It waits only when others are about to deliver, and at
most `batch_wait`. Workers that are free at the same time share what there is: two batches at once are faster than one
of twice the size.
"""

import math
import time
from collections.abc import Callable, Iterable, Sequence

from vitrail.serving.jobs import FairQueue, Item, Ticket
from vitrail.serving.settings import ServeSettings
from vitrail.serving.works import Compute, Explain, Prepare, Work

SMALL = 512 * 1024
"""Bytes of encoded images that are decoded together, or before images that are decoded already."""

Later = Callable[[float], None]
"""Has a free worker ask again after some seconds."""


class Backlog:
    """The images of all requests on which no worker works."""

    def __init__(self, models: Iterable[str], settings: ServeSettings) -> None:
        self.settings = settings
        self.decoding, self.computing = FairQueue(), {name: FairQueue() for name in models}
        self.explaining = FairQueue()
        self.seconds = {"decode": 0.005, "compute": 0.02}
        """What one image takes, as a moving mean."""

    @property
    def queues(self) -> Sequence[FairQueue]:
        """Every queue."""
        return [self.decoding, self.explaining, *self.computing.values()]

    def __len__(self) -> int:
        """Return how many images wait."""
        return sum(map(len, self.queues))

    def ahead(self, images: int) -> int:
        """Return how many images would be taken before the last of a new request of N images."""
        return sum(queue.ahead(images) for queue in self.queues)

    def dead(self) -> list[Ticket]:
        """Return the requests for which an answer would come too late."""
        return [ticket for queue in self.queues for ticket in queue.dead()]

    def tickets(self) -> set[Ticket]:
        """Return every request that has images here."""
        return {item.ticket for queue in self.queues for item in queue}

    def discard(self, ticket: Ticket) -> list[Item]:
        """Remove the images of a request, and return them."""
        return [item for queue in self.queues for item in queue.discard(ticket)]

    def put_decoded(self, item: Item) -> None:
        """Add an image that is ready for the model."""
        queue = self.explaining if item.ticket.options.explain else self.computing[item.ticket.model]
        queue.put(item)

    def put_back(self, item: Item, work: Work) -> None:
        """Add an image that a worker left undone, before all others."""
        queue = self.explaining if isinstance(work, Explain) else self.computing[item.ticket.model]
        (self.decoding if isinstance(work, Prepare) else queue).put(item, first=True)

    def learn(self, work: Work, seconds: float) -> None:
        """Take the time of some work into the means."""
        if work.items and work.kind in self.seconds:
            self.seconds[work.kind] += 0.1 * (seconds / len(work.items) - self.seconds[work.kind])

    def next(self, running: Iterable[Work], idle: int, later: Later) -> Work | None:
        """Return the most urgent work for one of the idle workers.

        None when there is none, or when it is worth waiting for more of it.
        """
        now = time.monotonic()
        full, wait = self.settings.batch, self.settings.batch_wait / 1000
        upcoming = self.decoding.first
        quick = upcoming is not None and len(upcoming.encoded) <= SMALL
        under_way = any(isinstance(work, Prepare) for work in running)
        due: list[tuple[float, FairQueue]] = []
        for queue in self.computing.values():
            waited = now - queue.oldest
            coming = quick and waited < wait
            if not coming and under_way and 0 <= waited < wait and len(queue) < full:
                later(wait - waited)
                coming = True
            if len(queue) and (len(queue) >= full or not coming):
                due.append((queue.oldest, queue))
        if len(self.explaining):
            due.append((self.explaining.oldest, self.explaining))
        if due:
            _, queue = min(due, key=lambda pair: pair[0])
            return self._take(queue, idle)
        return self._prepare(idle) if upcoming is not None else None

    def _prepare(self, idle: int) -> Work:
        """Return images to decode, at most a batch; one that is large, or over which a worker has ended, alone."""
        most, size = self._share(self.decoding, idle), 0
        items: list[Item] = []
        while (item := self.decoding.first) is not None and len(items) < most:
            size += len(item.encoded)
            if items and (size > SMALL or item.deaths or items[0].deaths):
                break
            self.decoding.take()
            items.append(item)
        return Prepare(items)

    def _share(self, queue: FairQueue, idle: int) -> int:
        """Return how many images one of the idle workers takes."""
        return min(self.settings.batch, math.ceil(len(queue) / max(idle, 1)))

    def _take(self, queue: FairQueue, idle: int) -> Work:
        """Return a batch, or one explanation; an image over which a worker has ended goes alone."""
        most = 1 if queue is self.explaining else self._share(queue, idle)
        items: list[Item] = []
        while (item := queue.first) is not None and len(items) < most:
            if items and (item.deaths or items[0].deaths):
                break
            queue.take()
            items.append(item)
        return Explain(items[0]) if queue is self.explaining else Compute(items)
