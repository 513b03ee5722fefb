"""The four kinds of work for a worker: each knows its message, and what the answer means."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np

from vitrail.serving.frames import Head
from vitrail.serving.jobs import Item


class Work(ABC):
    """Something that one worker does at a time."""

    kind: str
    """`decode`, `compute`, `explain` or `probe`."""
    items: Sequence[Item]
    """The images that it is about."""

    @abstractmethod
    def message(self) -> tuple[Head, bytes]:
        """Return what the worker is sent."""

    @abstractmethod
    def settle(self, head: Head, payload: bytes) -> Sequence[Item]:
        """Take the answer; finish images, or return those that are ready for the model now."""


class Prepare(Work):
    """Decode some images, and bring them to the model's size."""

    kind = "decode"

    def __init__(self, items: Sequence[Item]) -> None:
        self.items = items

    def message(self) -> tuple[Head, bytes]:
        """Send the encoded images."""
        models, sizes = [item.ticket.model for item in self.items], [len(item.encoded) for item in self.items]
        return {"do": "prepare", "models": models, "sizes": sizes}, b"".join(item.encoded for item in self.items)

    def settle(self, head: Head, payload: bytes) -> Sequence[Item]:
        """Keep the pixels, or finish a broken image."""
        ready: list[Item] = []
        at = 0
        for item, facts in zip(self.items, head["images"], strict=True):
            item.seconds["decode"], size = facts.pop("seconds"), facts.pop("bytes")
            if "wrong" in facts:
                item.finish(facts)
            elif not item.ticket.alive:
                item.finish({"wrong": [503, "it was too late for it."]})
            else:
                item.facts, item.pixels, item.encoded = facts, payload[at : at + size], b""
                ready.append(item)
            at += size
        return ready


class Compute(Work):
    """Classify a batch of decoded images."""

    kind = "compute"

    def __init__(self, items: Sequence[Item]) -> None:
        self.items = items
        self.with_features = [place for place, item in enumerate(items) if item.ticket.options.features]

    def message(self) -> tuple[Head, bytes]:
        """Send the pixels."""
        head = {
            "do": "compute",
            "model": self.items[0].ticket.model,
            "tops": [item.ticket.options.top for item in self.items],
            "features": self.with_features,
        }
        return head, b"".join(item.pixels for item in self.items)

    def settle(self, head: Head, payload: bytes) -> Sequence[Item]:
        """Hand each image its own answer."""
        features = np.frombuffer(payload, "<f4")
        rows = features.reshape(len(self.with_features), -1) if self.with_features else features
        for place, (item, answer) in enumerate(zip(self.items, head["answers"], strict=True)):
            item.seconds["compute"], item.batch = head["seconds"], len(self.items)
            if place in self.with_features and "wrong" not in answer:
                answer["features"] = rows[self.with_features.index(place)]
            item.finish(answer | item.facts)
        return []


class Explain(Work):
    """Classify one image, with a map of what the model looked at."""

    kind = "explain"

    def __init__(self, item: Item) -> None:
        self.items: Sequence[Item] = [item]

    def message(self) -> tuple[Head, bytes]:
        """Send the pixels, and what to explain."""
        item = self.items[0]
        options = item.ticket.options
        head = {
            "do": "explain",
            "model": item.ticket.model,
            "top": options.top,
            "features": options.features,
            "method": options.explain,
            "class": options.label,
            "layer": options.layer,
            "head": options.head,
            "patch": options.patch,
        }
        return head, item.pixels

    def settle(self, head: Head, payload: bytes) -> Sequence[Item]:
        """Hand over the answer and the map."""
        (item,) = self.items
        item.seconds["compute"] = head.pop("seconds")
        if "refused" in head:
            head = {"wrong": [422, head["refused"]]}
        if "map" in head:
            rows, columns = head["map"]["rows"], head["map"]["columns"]
            values = np.frombuffer(payload, "<f4")
            head["map"]["values"] = values[: rows * columns].reshape(rows, columns)
            if item.ticket.options.features:
                head["features"] = values[rows * columns :]
        item.finish(head | item.facts)
        return []


class Probe(Work):
    """Put a grey image through every model, to see that the worker can."""

    kind = "probe"
    items: Sequence[Item] = ()

    def message(self) -> tuple[Head, bytes]:
        """Ask for it."""
        return {"do": "probe"}, b""

    def settle(self, head: Head, payload: bytes) -> Sequence[Item]:  # noqa: ARG002 - as the others
        """Nobody waits for anything but the fact."""
        return []
