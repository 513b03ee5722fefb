"""One worker process as the server sees it: hatched, given work, and ended."""

import asyncio
import os
import signal
import socket
import time
from contextlib import suppress

from vitrail.base.errors import InputError
from vitrail.serving.frames import Head, packed_head, receive_async
from vitrail.serving.nursery import Nursery, WorkerEndedError

START_SECONDS = 600.0
"""How long a worker may take until it is ready: some engines take minutes."""


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
        self.closed = False
        """Whether the process has closed its socket, as it does when it ends."""
        self.reader = asyncio.StreamReader(limit=2**20)
        self._pid: int | None = None
        self._writer: asyncio.StreamWriter | None = None

    @property
    def ready(self) -> bool:
        """Whether an image has gone through each of its models."""
        return bool(self.models)

    async def start(self, nursery: Nursery) -> None:
        """Start the process and wait until it is ready; raises what it refuses, or `WorkerEndedError`."""
        await nursery.start()
        ours, theirs = socket.socketpair()
        with theirs:
            nursery.hatch(theirs)
        ours.setblocking(False)
        loop = asyncio.get_running_loop()
        transport, protocol = await loop.create_connection(lambda: _Line(self), sock=ours)
        self._writer = asyncio.StreamWriter(transport, protocol, self.reader, loop)
        head, _ = await self.call({"do": "begin"}, b"", START_SECONDS)
        if "refused" in head:
            raise InputError(head["refused"])
        self.models, self._pid = head["models"], head["pid"]
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

    async def end(self) -> None:
        """End the process now, if it has not ended."""
        self.models, self.idle = {}, False
        if self._pid is not None and not self.closed:  # alive, so that the number is still its own
            with suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGKILL)
        if self._writer is not None:
            self._writer.close()
            with suppress(OSError):
                await self._writer.wait_closed()


class _Line(asyncio.StreamReaderProtocol):
    """The socket to a worker, which notices at once when the process has ended, even while it had nothing to do."""

    def __init__(self, member: Member) -> None:
        super().__init__(member.reader)
        self._member = member

    def eof_received(self) -> bool:
        """Mark the member as ended; the socket closes."""
        super().eof_received()
        self._end()
        return False

    def connection_lost(self, error: Exception | None) -> None:
        """Do the same where the socket broke."""
        super().connection_lost(error)
        self._end()

    def _end(self) -> None:
        self._member.idle, self._member.closed = False, True
        self._member.ended.set()
