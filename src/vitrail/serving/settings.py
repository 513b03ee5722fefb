"""The settings of a server: where it listens, how much it takes, and which models it has."""

import ipaddress
import os
from dataclasses import dataclass, field
from typing import Any

from vitrail.base.errors import ConfigError
from vitrail.base.numbers import MANY, MOST_BATCH, MOST_THREADS, MOST_WORKERS, check_whole

MEBIBYTE = 2**20
LOOPBACK = ("localhost",)


@dataclass(frozen=True, kw_only=True)
class ModelSource:
    """A model to serve, and how its file is read."""

    path: str
    """A file or folder of any format that `vitrail.load` reads."""
    reading: dict[str, Any] = field(default_factory=dict)
    """Keywords of `Classifier.load`: device, labels, image_size, ..."""


@dataclass(frozen=True, kw_only=True)
class ServeSettings:
    """How a server listens, batches, and what it refuses."""

    host: str = "127.0.0.1"
    """The address to listen on; one that others can reach needs `api_key_file`."""
    port: int = 8000
    """The port to listen on; 0 takes any that is free."""
    workers: int | None = None
    """Processes that decode and compute; None takes one for each core."""
    threads: int | None = None
    """Threads of each worker; None divides the cores among the workers that have work."""
    batch: int = 4
    """The most images that go through a model at once."""
    batch_wait: float = 4.0
    """Milliseconds that a decoded image waits for others, at most, when a worker is free."""
    max_queue: int = 64
    """The most images that are in the server at once; further ones get 429."""
    max_wait: float = 1.0
    """Seconds that a request may be expected to wait for its turn; further ones get 429."""
    max_images: int = 16
    """The most images of one request."""
    max_body: int = 32
    """The largest body of a request, in MiB."""
    max_pixels: int = 50_000_000
    """The most pixels of one image."""
    timeout: float = 30.0
    """Seconds until a request is answered with 503; a request may set a shorter time."""
    grace: float = 20.0
    """Seconds in which running requests are finished when the server is stopped."""
    api_key_file: str | None = None
    """A file with the keys that requests may carry, one on each line."""
    cors: tuple[str, ...] = ()
    """Origins of web pages that may call the server."""

    def __post_init__(self) -> None:
        """Refuse what cannot be, and an open door."""
        bounds = {
            "port": (0, 65535),
            "batch": (1, MOST_BATCH),
            "max_queue": (1, 100_000),
            "max_images": (1, 100_000),
            "max_body": (1, 4096),
            "max_pixels": (1, MANY),
        }
        for name, (least, most) in bounds.items():
            check_whole(name, getattr(self, name), least=least, most=most)
        for name, most in (("workers", MOST_WORKERS), ("threads", MOST_THREADS)):
            if getattr(self, name) is not None:
                check_whole(name, getattr(self, name), most=most)
        for name, longest in (("batch_wait", 1000.0), ("max_wait", 3600.0), ("timeout", 3600.0), ("grace", 3600.0)):
            seconds = getattr(self, name)
            if not 0 <= seconds <= longest or (name in ("timeout", "max_wait") and not seconds):
                raise ConfigError(f"{name} is {seconds!r}, but must be above 0 and at most {longest:g}.")
        if self.max_images > self.max_queue:
            raise ConfigError(
                f"max_images is {self.max_images}, but the queue has room for {self.max_queue}; set a larger "
                "`max_queue`."
            )
        for origin in self.cors:
            if origin != "*" and not origin.startswith(("http://", "https://")):
                raise ConfigError(f"cors is {origin!r}, but an origin begins with http:// or https://, or is *.")
        if not self.is_local and self.api_key_file is None:
            raise ConfigError(
                f"host is {self.host!r}, which other machines can reach; set `api_key_file` to a file with a key that "
                "they must send, or leave `host` at 127.0.0.1."
            )

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach the address."""
        if self.host in LOOPBACK:
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    @property
    def shares(self) -> tuple[int, int]:
        """The number of workers, and the threads of each."""
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        workers = self.workers or (max(cores // self.threads, 1) if self.threads else cores)
        return workers, self.threads or max(cores // workers, 1)

    def threads_for(self, works: int) -> int:
        """Return the threads of a worker while there is work for so many: cores without work help the others.

        One core is left for the server itself and its clients: threads that share a product of matrices wait for each
        other, so that all are as slow as one whose core does something else (docs/log.md).
        """
        workers, threads = self.shares
        if self.threads is not None:
            return threads
        return max((workers * threads - 1) // max(min(works, workers), 1), threads)

    @property
    def body_bytes(self) -> int:
        """The largest body in bytes."""
        return self.max_body * MEBIBYTE
