"""A tiny model to serve, images to send, and the service in process: workers are threads of work without a process."""

import asyncio
import base64
import io
from collections.abc import Awaitable, Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from PIL import Image

import vitrail
from tests.tiny import perturbed, vit_config
from vitrail.data.preprocessing import preset
from vitrail.serving import fleet
from vitrail.serving.app import make_app
from vitrail.serving.frames import Head
from vitrail.serving.member import Member
from vitrail.serving.nursery import Nursery, WorkerEndedError
from vitrail.serving.service import Service
from vitrail.serving.settings import ModelSource, ServeSettings
from vitrail.serving.tasks import Tasks
from vitrail.serving.watch import Watch
from vitrail.serving.worker import work

LABELS = ("ant", "bee", "cat", "dog", "elk", "fox", "gnu")
KEY = "0123456789abcdef0123456789abcdef"


def save_model(path: Path, *, seed: int = 0, labels: tuple[str, ...] | None = LABELS) -> Path:
    """Write a Vitrail file of a model with 3x4 patches."""
    model = perturbed(vit_config(), seed=seed, by=0.3)
    return vitrail.save(model, path, labels=labels, preprocessing=preset("google", image_size=(12, 16)))


def photo(seed: int = 0, size: tuple[int, int] = (30, 40), form: str = "PNG") -> bytes:
    """An encoded image of noise."""
    pixels = np.random.default_rng(seed).integers(0, 256, (*size, 3), dtype=np.uint8)
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, form)
    return file.getvalue()


def parts(*images: bytes) -> list[tuple[str, tuple[str, bytes, str]]]:
    """Files as httpx sends them."""
    return [("images", (f"{place}.png", image, "image/png")) for place, image in enumerate(images)]


def in_base64(image: bytes) -> str:
    return base64.b64encode(image).decode()


class InProcess(Member):
    """A member whose work is done here, at once or after a pause; it can be told to end."""

    pause = 0.0
    deadly: bytes | None = None
    """Work that contains this ends the worker."""
    calls: list[Head] = []  # noqa: RUF012 - of all members, cleared for each test

    async def start(self, nursery: Nursery) -> None:
        paths = tuple((name, source.path) for name, source in nursery.sources.items())
        self.tasks = _tasks(paths, nursery.max_pixels)
        self.models = {name: self.tasks.describe(name) for name in nursery.sources}
        self.idle = True

    async def call(self, head: Head, payload: bytes, seconds: float) -> tuple[Head, bytes]:
        del seconds
        type(self).calls.append(head)
        await asyncio.sleep(self.pause)
        if self.deadly is not None and self.deadly in payload:
            raise WorkerEndedError
        answer, content = work(self.tasks, head, bytearray(payload))
        return {**answer, "seconds": 0.001}, content

    async def end(self) -> None:
        self.models, self.idle = {}, False


@lru_cache
def _tasks(paths: tuple[tuple[str, str], ...], max_pixels: int) -> Tasks:
    """Load each set of models once; all members share it."""
    return Tasks.load({name: ModelSource(path=path) for name, path in paths}, max_pixels=max_pixels)


Scenario = Callable[[httpx.AsyncClient, Service], Awaitable[Any]]


class Bench:
    """Runs scenarios against the whole application, without sockets or processes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, model: Path) -> None:
        self.model, self.lines = model, []
        self.member = type("InProcess", (InProcess,), {"calls": []})
        monkeypatch.setattr(fleet, "Member", self.member)

    def run(self, scenario: Scenario, *, keys: tuple[bytes, ...] = (), models: Any = None, **settings: Any) -> Any:
        """Start a service, let the scenario use it, and close it."""
        paths = models or {"tiny": self.model}
        sources = {name: ModelSource(path=str(path)) for name, path in paths.items()}

        async def whole() -> Any:
            service = Service(
                sources,
                ServeSettings(**{"workers": 2, "threads": 1, "timeout": 5.0} | settings),
                Watch(self.lines.append),
            )
            await service.start()
            transport = httpx.ASGITransport(app=make_app(service, keys), raise_app_exceptions=True)
            try:
                async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
                    return await scenario(client, service)
            finally:
                await service.close()

        return asyncio.run(whole())
