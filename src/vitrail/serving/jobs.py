"""What a request asks for, its images, and the queue in which no request is held up by the size of another."""

import asyncio
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

Outcome = dict[str, Any]
"""What became of an image: `top`, and perhaps `features` and `map`; or `wrong`, a status with a sentence."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """What is asked for each image of a request."""

    top: int = 5
    features: bool = False
    explain: str | None = None
    """The method, or `auto`; None explains nothing."""
    label: int | None = None
    """The class to explain, by number; None takes the most probable one."""
    layer: int = -1
    head: int | None = None
    patch: int | None = None
    """With the method attention: the patch whose attention is shown."""


@dataclass(eq=False, kw_only=True)
class Ticket:
    """One request: its model, its options, and when it has become useless."""

    model: str
    options: Options
    deadline: float
    """By `time.monotonic`."""
    gone: bool = False
    """Whether nobody waits for the answer any more."""

    @property
    def alive(self) -> bool:
        """Whether the answer would still be of use."""
        return not self.gone and time.monotonic() < self.deadline


@dataclass(eq=False, kw_only=True)
class Item:
    """One image of a request, on its way through the server."""

    ticket: Ticket
    encoded: bytes
    outcome: "asyncio.Future[Outcome]"
    pixels: bytes = b""
    """The decoded image at the model's size."""
    facts: dict[str, Any] = field(default_factory=dict)
    """Its height and width, and the part of it that the model sees."""
    deaths: int = 0
    """How many workers have ended while they worked on it."""
    since: float = 0.0
    """When it was put into its present queue, by `time.monotonic`."""
    seconds: dict[str, float] = field(default_factory=dict)
    """Time spent: decode, compute."""
    batch: int = 1
    """How many images went through the model with it."""

    def finish(self, outcome: Outcome) -> None:
        """Hand over what became of the image, unless nobody waits."""
        self.encoded = self.pixels = b""
        if not self.outcome.done():
            self.outcome.set_result(outcome)


class FairQueue:
    """Images of many requests, taken one from each request in turn."""

    def __init__(self) -> None:
        self._tickets: dict[Ticket, deque[Item]] = {}
        self._count = 0

    def __len__(self) -> int:
        """Return how many images wait."""
        return self._count

    def __iter__(self) -> Iterator[Item]:
        """Go through all of them, without taking any."""
        return (item for items in self._tickets.values() for item in items)

    def put(self, item: Item, *, first: bool = False) -> None:
        """Add an image behind the others of its request; `first` puts it, with its request, before all others."""
        item.since = time.monotonic()
        items = self._tickets.setdefault(item.ticket, deque())
        self._count += 1
        if not first:
            items.append(item)
            return
        items.appendleft(item)
        self._tickets = {item.ticket: items, **self._tickets}

    @property
    def first(self) -> Item | None:
        """The image that is taken next."""
        return next(iter(self._tickets.values()))[0] if self._tickets else None

    def take(self) -> Item | None:
        """Take the next image of the request whose turn it is; None when there is none."""
        if not self._tickets:
            return None
        ticket, items = next(iter(self._tickets.items()))
        item = items.popleft()
        self._count -= 1
        del self._tickets[ticket]
        if items:
            self._tickets[ticket] = items  # behind the others
        return item

    def ahead(self, images: int) -> int:
        """Return how many images would be taken before the last of a new request of N images."""
        return sum(min(images, len(items)) for items in self._tickets.values())

    def discard(self, ticket: Ticket) -> list[Item]:
        """Remove the images of a request, and return them."""
        items = self._tickets.pop(ticket, deque())
        self._count -= len(items)
        return list(items)

    def dead(self) -> list[Ticket]:
        """Return the requests for which an answer would come too late."""
        return [ticket for ticket in self._tickets if not ticket.alive]

    @property
    def oldest(self) -> float:
        """Since when the longest waiting image waits; infinite when none does."""
        return min((items[0].since for items in self._tickets.values()), default=float("inf"))
