"""The service behind HTTP: takes requests while there is room, watches their deadlines, and exchanges models."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from typing import Any

from vitrail.base.errors import InputError, VitrailError
from vitrail.serving.answers import result_of
from vitrail.serving.bodies import Budget, Upload
from vitrail.serving.fleet import Fleet
from vitrail.serving.frames import Head
from vitrail.serving.jobs import Item, Options, Ticket
from vitrail.serving.metrics import Labels
from vitrail.serving.refusals import CODES, GoneError, Refusal, error_content
from vitrail.serving.settings import ModelSource, ServeSettings
from vitrail.serving.watch import Watch

BODIES = 8
"""Bodies of the largest size that may be in memory at once."""
PROBE_AGE = 10.0
"""Seconds after which readiness is not believed without another pass."""


class Service:
    """Some models, ready to answer."""

    def __init__(self, sources: Mapping[str, ModelSource], settings: ServeSettings, watch: Watch) -> None:
        self.sources, self.settings, self.watch = sources, settings, watch
        self.fleet = Fleet(sources, settings, watch)
        self.budget = Budget(BODIES * settings.body_bytes)
        self.draining = False
        self._reloading = False
        self._retiring: set[asyncio.Task[None]] = set()
        watch.state = self._state

    @property
    def models(self) -> dict[str, Head]:
        """What is known about each model, by name; the first one is the default."""
        return self.fleet.models

    async def start(self) -> None:
        """Load the models; raises what is wrong with them."""
        await self.fleet.start()

    async def close(self) -> None:
        """End the workers; the HTTP server has finished the running requests."""
        self.draining = True
        for retirement in self._retiring:
            retirement.cancel()
        await asyncio.gather(self.fleet.close(0.0), *self._retiring, return_exceptions=True)

    async def reload(self) -> None:
        """Read the models again; running requests are finished by the old workers, later ones go to the new."""
        if self._reloading:
            raise Refusal(409, "reloading", "the models are being read again already.")
        self._reloading = True
        fresh = Fleet(self.sources, self.settings, self.watch)
        try:
            await fresh.start()
        except VitrailError as error:
            self.watch.event("reload_failed", reason=str(error))
            raise Refusal(
                422, "reload_failed", "a model could not be read again, so the old ones stay; the log has the reason."
            ) from None
        finally:
            self._reloading = False
        self.fleet, old = fresh, self.fleet
        self.watch.event("reloaded", models={name: model["digest"] for name, model in fresh.models.items()})
        retirement = asyncio.create_task(old.close(self.settings.timeout + self.settings.grace))
        self._retiring.add(retirement)
        retirement.add_done_callback(self._retiring.discard)

    def model(self, name: str | None) -> Head:
        """Return the facts about a model; None is the default."""
        if name is None:
            return next(iter(self.models.values()))
        if name not in self.models:
            raise Refusal(404, "no_such_model", "there is no model of this name; /v1/models lists them.")
        return self.models[name]

    def check_room(self, images: int, deadline: float) -> None:
        """Refuse a request for which there is no room, or no time."""
        turn, end = (self.fleet.backlog.ahead(count) * self.fleet.image_seconds for count in (1, images))
        if self.fleet.pending + images > self.settings.max_queue:
            raise Refusal(429, "queue_full", "the server has more to do than fits into its queue.", retry=turn)
        if turn > (most := self.settings.max_wait):
            sentence = f"requests wait for more than {most:g} seconds for their turn."
            raise Refusal(429, "too_busy", sentence, retry=turn - most)
        if time.monotonic() + end > deadline:
            raise Refusal(429, "too_busy", "the answer would come after the deadline.", retry=end)

    async def predict(
        self,
        name: str | None,
        options: Options,
        uploads: Sequence[Upload],
        deadline: float,
        gone: "asyncio.Future[Any]",
    ) -> tuple[int, dict[str, Any]]:
        """Answer for the images of a request: the status, and the content.

        `gone` is done when the client has gone, and then nothing more is computed.
        """
        began = time.monotonic()
        model, fleet = self.model(name), self.fleet
        self.check_room(len(uploads), deadline)
        ticket = Ticket(model=model["name"], options=options, deadline=deadline)
        loop = asyncio.get_running_loop()
        items = [Item(ticket=ticket, encoded=upload.content, outcome=loop.create_future()) for upload in uploads]
        for item, upload in zip(items, uploads, strict=True):
            if upload.wrong is not None:
                item.finish({"wrong": [422, upload.wrong]})
        fleet.submit([item for item in items if not item.outcome.done()])
        await self._wait(fleet, ticket, items, gone)
        outcomes = [item.outcome.result() for item in items]
        results = [
            result_of(upload.name, outcome, model, options) for upload, outcome in zip(uploads, outcomes, strict=True)
        ]
        for outcome in outcomes:
            self.watch.answered(str(outcome["wrong"][0]) if "wrong" in outcome else "ok")
        content = {
            "model": {"name": model["name"], "digest": model["digest"]},
            "results": results,
            "timings": _timings(items, time.monotonic() - began),
        }
        wrong = [outcome["wrong"] for outcome in outcomes if "wrong" in outcome]
        if len(wrong) < len(outcomes):
            return 200, content
        status, sentence = wrong[0]
        return status, content | error_content(CODES[status], sentence)

    async def _wait(self, fleet: Fleet, ticket: Ticket, items: Sequence[Item], gone: "asyncio.Future[Any]") -> None:
        """Wait until all images are answered; otherwise forget the request, and raise the reason."""
        answers = asyncio.ensure_future(asyncio.wait([item.outcome for item in items]))
        try:
            remaining = max(ticket.deadline - time.monotonic(), 0.0)
            await asyncio.wait({answers, gone}, timeout=remaining, return_when=asyncio.FIRST_COMPLETED)
            if answers.done():
                return
        finally:
            if not answers.done():
                fleet.drop(ticket)
                answers.cancel()
        if gone.done():
            self.watch.dropped.add(reason="gone")
            raise GoneError
        self.watch.dropped.add(reason="late")
        raise Refusal(503, "too_slow", "the answer was not ready within the deadline.", retry=1.0)

    async def ready(self) -> list[dict[str, Any]]:
        """Return the state of each worker; those that were idle for a while compute once more first."""
        await self.fleet.probe(PROBE_AGE)
        now = time.monotonic()
        return [
            {"ready": member.ready, "seconds_since_pass": round(now - member.last_pass, 1) if member.ready else None}
            for member in self.fleet.members
        ]

    def _state(self) -> dict[str, dict[Labels, float]]:
        fleet = self.fleet
        return {
            "vitrail_queue_images": {(): float(len(fleet.backlog))},
            "vitrail_pending_images": {(): float(fleet.pending)},
            "vitrail_workers_ready": {(): float(fleet.ready)},
            "vitrail_model_info": {
                (("digest", model["digest"]), ("name", name)): 1.0 for name, model in self.models.items()
            },
        }


def class_number(label: str | None, labels: Sequence[str]) -> int | None:
    """Return the number of a class that is named, or numbered."""
    if label is None:
        return None
    if label in labels:
        return labels.index(label)
    if label.isascii() and label.isdigit() and int(label[:9]) < len(labels):
        return int(label)
    raise Refusal(422, "no_such_class", "the model has no such class; /v1/labels lists them.")


def check_names(names: Sequence[str]) -> None:
    """Refuse names of models that cannot stand in a path, or stand twice."""
    for name in names:
        if not name or not all(letter.isalnum() or letter in "-_." for letter in name):
            raise InputError(f"the model name {name!r} must be letters, digits, '-', '_' and '.' only.")
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"two models have the name {name!r}; name them, as in a=FILE b=FILE.")


def _timings(items: Sequence[Item], seconds: float) -> dict[str, Any]:
    decode = max((item.seconds.get("decode", 0.0) for item in items), default=0.0)
    compute = max((item.seconds.get("compute", 0.0) for item in items), default=0.0)
    return {
        "decode_ms": round(1000 * decode, 2),
        "compute_ms": round(1000 * compute, 2),
        "total_ms": round(1000 * seconds, 2),
        "batch": max((item.batch for item in items), default=1),
    }
