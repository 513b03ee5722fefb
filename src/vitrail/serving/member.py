"""One worker process as the server sees it: started, given work, and ended."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict

from vitrail.base.errors import InputError
from vitrail.serving.frames import Head, packed_head, receive_async
from vitrail.serving.settings import ModelSource

START_SECONDS = 600.0
"""How long a worker may take until it is ready: a large model comes from a slow disk."""


class WorkerEndedError(Exception):
    """The process has ended, or was ended since it did not answer in time."""


class Member:
    """A worker process; it does one thing at a time."""

    def __init__(self) -> None:
        self.idle = False
        self.last_pass = 0.0
        """When the model last computed in it, by `time.monotonic`."""
        self.models: dict[str, Head] = {}
        """What it says of each model, once it is ready."""
        self.ended = asyncio.Event()
        """Set when the process has ended, or must be."""
        self._process: subprocess.Popen[bytes] | None = None
        self.reader = asyncio.StreamReader(limit=2**20)
        self._writer: asyncio.StreamWriter | None = None

    @property
    def ready(self) -> bool:
        """Whether it has loaded the models and put an image through each."""
        return bool(self.models)

    @property
    def pid(self) -> int | None:
        """The process, if there is one."""
        return None if self._process is None else self._process.pid

    async def start(self, sources: Mapping[str, ModelSource], *, threads: int, max_pixels: int) -> None:
        """Start the process and wait until it is ready; raises what it refuses, or `WorkerEndedError`."""
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(  # noqa: S603 (our own program, with the Python that is running)
                [sys.executable, "-m", "vitrail.serving.worker", str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                env=os.environ | {"OMP_NUM_THREADS": str(threads), "PYTHONSAFEPATH": "1"},
            )
        ours.setblocking(False)
        loop = asyncio.get_running_loop()
        transport, protocol = await loop.create_connection(lambda: _Line(self), sock=ours)
        self._writer = asyncio.StreamWriter(transport, protocol, self.reader, loop)
        models = {name: asdict(source) for name, source in sources.items()}
        head, _ = await self.call({"models": models, "threads": threads, "max_pixels": max_pixels}, b"", START_SECONDS)
        if "refused" in head:
            raise InputError(head["refused"])
        self.models = head["models"]
        self.last_pass = time.monotonic()
        self.idle = True

    async def call(self, head: Head, payload: bytes, seconds: float) -> tuple[Head, bytes]:
        """Give it one message, and wait for the answer."""
        assert self._writer is not None  # noqa: S101 - started
        try:
            self._writer.write(packed_head(head, len(payload)))
            self._writer.write(payload)
            async with asyncio.timeout(seconds):
                await self._writer.drain()
                return await receive_async(self.reader)
        except (asyncio.IncompleteReadError, OSError, TimeoutError, ValueError) as error:
            raise WorkerEndedError(type(error).__name__) from None

    async def end(self) -> int | None:
        """End the process now, if it has not ended, and return its exit code."""
        self.models, self.idle = {}, False
        if self._writer is not None:
            self._writer.close()
            with suppress(OSError):
                await self._writer.wait_closed()
        if self._process is None:
            return None
        with suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGKILL)
        return await asyncio.to_thread(self._process.wait)


class _Line(asyncio.StreamReaderProtocol):
    """The socket to a worker, which notices at once when the process has ended, even while it had nothing to do."""

    def __init__(self, member: Member) -> None:
        super().__init__(member.reader)
        self._member = member

    def eof_received(self) -> bool:
        """Mark the member as ended; the socket closes."""
        super().eof_received()
        self._member.idle = False
        self._member.ended.set()
        return False

    def connection_lost(self, error: Exception | None) -> None:
        """Do the same where the socket broke."""
        super().connection_lost(error)
        self._member.idle = False
        self._member.ended.set()
