"""The worker processes of one set of models: who gets which work, and what happens when one ends.

Work whose request has gone or is late is not started. A worker that ends is replaced; its images are tried once more,
each alone.
"""

import asyncio
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress

from vitrail.base.errors import InputError
from vitrail.serving.backlog import Backlog
from vitrail.serving.frames import Head
from vitrail.serving.jobs import Item, Ticket
from vitrail.serving.member import Member
from vitrail.serving.nursery import Nursery, WorkerEndedError
from vitrail.serving.settings import ModelSource, ServeSettings
from vitrail.serving.watch import Watch
from vitrail.serving.works import Prepare, Probe, Work

MOST_TRIES = 2
"""How often an image is begun: a worker may have been ended for another reason, but two point to the image."""
LONGEST_PAUSE = 10.0
"""Seconds between attempts to start a worker that keeps ending, at most."""
YOUNG = 0.1
"""Seconds after it was ready; a worker that ends sooner could not work from the start. One that was killed later is
replaced at once: to wait for it would leave the requests to the others, of which the next may be killed meanwhile."""
STUCK = 60.0
"""Seconds after which work without an answer ends the worker; twice the deadline, if that is more."""
DIED = {"wrong": [503, "the process that worked on it ended, and ended again when it was tried once more."]}


class Fleet:
    """Workers with the same models."""

    def __init__(self, sources: Mapping[str, ModelSource], settings: ServeSettings, watch: Watch) -> None:
        self.sources, self.settings, self.watch = sources, settings, watch
        self.models: dict[str, Head] = {}
        self.backlog = Backlog(sources, settings)
        self.running: dict[Member, Work] = {}
        self.members: list[Member] = []
        self.nursery = Nursery(sources, threads=settings.shares[1], max_pixels=settings.max_pixels)
        self.plain = all(source.reading.get("engine") in (None, "torch") for source in sources.values())
        """Whether torch computes without a compiler: anything else keeps the number of threads it began with."""
        self.closing = False
        self._keepers: list[asyncio.Task[None]] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._drained = asyncio.Event()

    @property
    def pending(self) -> int:
        """Images that are not finished."""
        return len(self.backlog) + sum(len(work.items) for work in self.running.values())

    @property
    def ready(self) -> int:
        """Workers that can compute."""
        return sum(member.ready for member in self.members)

    @property
    def image_seconds(self) -> float:
        """How long the whole fleet takes for one image more; a worker that has ended is about to be replaced."""
        return sum(self.backlog.seconds.values()) / max(len(self.members), 1)

    async def start(self) -> None:
        """Start all workers, and wait until each has put an image through each model; raise what one refuses."""
        count, _ = self.settings.shares
        self.members = [Member() for _ in range(count)]
        starts: list[asyncio.Future[None]] = []
        try:
            if not self.plain:
                await self.members[0].start(self.nursery)  # measures engines, makes graphs; the others find them
            starts += [asyncio.ensure_future(member.start(self.nursery)) for member in self.members if not member.ready]
            await asyncio.gather(*starts)
        except WorkerEndedError:
            await self._stop_all(starts)
            raise InputError(
                "a worker process ended while it loaded the models; there may be too little memory for them: "
                "use fewer `workers`."
            ) from None
        except BaseException:
            await self._stop_all(starts)
            raise
        self.models = self.members[0].models
        self._keepers = [asyncio.create_task(self._keep(place)) for place in range(count)]

    def submit(self, items: Sequence[Item]) -> None:
        """Take the images of a request."""
        for item in items:
            self.backlog.decoding.put(item)
        self.dispatch()

    def drop(self, ticket: Ticket) -> None:
        """Forget a request: what has not begun is never computed."""
        ticket.gone = True
        for item in self.backlog.discard(ticket):
            item.finish({"wrong": [503, "nobody waited for it."]})
        self._check_drained()

    def dispatch(self) -> None:
        """Give work to every free worker."""
        for ticket in self.backlog.dead():
            self.drop(ticket)
        idle = [member for member in self.members if member.idle]
        works: list[tuple[Member, Work]] = []
        for place, member in enumerate(idle):
            work = self.backlog.next(self.running.values(), len(idle) - place, self._call_later)
            if work is not None:
                member.idle = False
                self.running[member] = work
                works.append((member, work))
        for member, work in works:
            task = asyncio.create_task(self._run(member, work))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        self._check_drained()

    async def probe(self, age: float) -> None:
        """Put an image through every idle worker that has not computed for `age` seconds."""
        old = time.monotonic() - age
        tasks = []
        for member in self.members:
            if member.idle and member.last_pass < old:
                member.idle = False
                self.running[member] = work = Probe()
                tasks.append(asyncio.create_task(self._run(member, work)))
        await asyncio.gather(*tasks)

    async def close(self, seconds: float) -> None:
        """Finish what is there, for at most so long, and end the workers."""
        self.closing = True
        self._check_drained()
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._drained.wait()
        finally:
            for ticket in self.backlog.tickets():
                self.drop(ticket)
            await self._stop_all(self._keepers)
            if self._timer is not None:
                self._timer.cancel()

    def _check_drained(self) -> None:
        if self.closing and not self.pending:
            self._drained.set()

    def _call_later(self, seconds: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(seconds, self.dispatch)

    async def _run(self, member: Member, work: Work) -> None:
        """Let a worker do some work, and pass on what comes out."""
        try:
            head, payload = work.message()
            if self.plain:
                head["threads"] = self.settings.threads_for(len(self.running) + len(self.backlog))
            head, payload = await member.call(head, payload, max(STUCK, 2 * self.settings.timeout))
        except WorkerEndedError:
            del self.running[member]
            member.ended.set()
            self._again(work)
        else:
            del self.running[member]
            member.idle = True
            if not isinstance(work, Prepare):
                member.last_pass = time.monotonic()
            try:
                self._settle(work, head, payload)
            except Exception as error:  # a fault of ours must not leave requests waiting
                self.watch.event("fault", kind=type(error).__name__, at="settle")
                for item in work.items:
                    item.finish({"wrong": [503, "it was not answered, for a fault of the server."]})
        self.dispatch()

    def _settle(self, work: Work, head: Head, payload: bytes) -> None:
        seconds = head["seconds"]
        self.backlog.learn(work, seconds)
        self.watch.worked(work.kind, len(work.items), seconds)
        for item in work.settle(head, payload):  # those that are decoded now
            self.backlog.put_decoded(item)

    def _again(self, work: Work) -> None:
        """Put back what a worker left undone; what keeps ending workers is answered."""
        for item in reversed(work.items):
            item.deaths += 1
            if item.deaths == MOST_TRIES:
                item.finish(DIED)
            else:
                self.backlog.put_back(item, work)

    async def _keep(self, place: int) -> None:
        """Replace the worker at one place whenever it ends."""
        pause = 0.0
        while True:
            began = time.monotonic()
            await self.members[place].ended.wait()
            await self.members[place].end()
            self.watch.restarted()
            pause = next_pause(pause, time.monotonic() - began)
            await asyncio.sleep(pause)
            self.members[place] = member = Member()
            try:
                await member.start(self.nursery)
            except (WorkerEndedError, InputError):
                member.ended.set()
            else:
                await self._check_models(member)
            self.dispatch()

    async def _check_models(self, member: Member) -> None:
        """End a new worker that has other models than the server began with: a file was replaced, and not reloaded."""
        for name, model in member.models.items():
            if model["digest"] != self.models[name]["digest"]:
                self.watch.event("model_changed", model=name, digest=model["digest"], advice="reload")
                await member.end()
                member.ended.set()
                return

    async def _stop_all(self, tasks: Sequence["asyncio.Future[None]"]) -> None:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.gather(*(member.end() for member in self.members))
        self.nursery.end()


def next_pause(pause: float, lived: float) -> float:
    """Return how long to wait before the next worker, after the last pause and so many seconds of its successor."""
    return min(max(2 * pause, 0.25), LONGEST_PAUSE) if lived < YOUNG else 0.0
