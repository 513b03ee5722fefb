"""The process from which workers come: it has loaded the models once, and forks.

A worker that dies is replaced in milliseconds, where importing torch and reading a model takes seconds; and the weights
are in memory once, however many workers there are.
"""

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict

from vitrail.base.errors import InputError
from vitrail.serving.frames import receive, send
from vitrail.serving.settings import ModelSource


class WorkerEndedError(Exception):
    """The process has ended, or was ended since it did not answer in time."""


class Nursery:
    """The parent of all workers of a fleet."""

    def __init__(self, sources: Mapping[str, ModelSource], *, threads: int, max_pixels: int) -> None:
        self.sources, self.threads, self.max_pixels = sources, threads, max_pixels
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._starting = asyncio.Lock()

    async def start(self) -> None:
        """Start the process, unless it is alive, and wait until it has loaded the models; raises what it refuses."""
        async with self._starting:
            if self._process is not None and self._process.poll() is None:
                return
            self.end()
            control, theirs = socket.socketpair()
            with theirs:
                self._process = subprocess.Popen(  # noqa: S603 (our own program, with the Python that is running)
                    [sys.executable, "-m", "vitrail.serving.worker", str(theirs.fileno())],
                    pass_fds=[theirs.fileno()],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                    env=os.environ
                    | {"OMP_NUM_THREADS": str(self.threads), "OPENBLAS_NUM_THREADS": "1", "PYTHONSAFEPATH": "1"},
                )
            self._control = control
            models = {name: asdict(source) for name, source in self.sources.items()}
            send(control, {"models": models, "threads": self.threads, "max_pixels": self.max_pixels})
            try:
                answer = await asyncio.to_thread(receive, control)
            except OSError:
                answer = None
            if answer is None:
                raise WorkerEndedError
            if "refused" in answer[0]:
                raise InputError(answer[0]["refused"])

    def hatch(self, stream: socket.socket) -> None:
        """Let a new worker serve a socket."""
        if self._control is None:
            raise WorkerEndedError
        try:
            socket.send_fds(self._control, [b"w"], [stream.fileno()])
        except OSError:
            raise WorkerEndedError from None

    def end(self) -> None:
        """End the process; its workers end when their sockets are closed."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                self._process.send_signal(signal.SIGKILL)
            self._process.wait()
            self._process = None
        if self._control is not None:
            self._control.close()
            self._control = None
