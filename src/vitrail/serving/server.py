"""A running server: a thread with the HTTP server in it, and the handle to stop and reload it."""

import asyncio
import logging
import threading
from collections.abc import Mapping
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import TYPE_CHECKING, Any

from vitrail.base.errors import VitrailError
from vitrail.base.notes import Note
from vitrail.serving.address import bind
from vitrail.serving.keys import read_keys
from vitrail.serving.refusals import Refusal
from vitrail.serving.settings import ModelSource, ServeSettings
from vitrail.serving.watch import Log, Watch

if TYPE_CHECKING:
    from vitrail.serving.service import Service  # needs the extra `serve`


class Server:
    """A server that is listening, until `stop` or the end of its `with` block."""

    def __init__(
        self,
        sources: Mapping[str, ModelSource],
        settings: ServeSettings,
        *,
        log: Log,
        note: Note,
        folder: TemporaryDirectory[str] | None = None,
    ) -> None:
        self.settings, self._folder = settings, folder
        self._keys = () if settings.api_key_file is None else read_keys(settings.api_key_file, note)
        self._sources, self._log, self._note = sources, log, note
        self._socket = bind(settings)
        host, self.port = self._socket.getsockname()[:2]
        self.url = f"http://{f'[{host}]' if ':' in host else host}:{self.port}"
        """Where it listens."""
        self._up, self._down = threading.Event(), threading.Event()
        self._failure: BaseException | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._service: Service | None = None
        self._http: Any = None
        self._thread = threading.Thread(target=self._run, name="vitrail-serve", daemon=True)

    def start(self) -> "Server":
        """Load the models and listen; returns when it does, or raises what is wrong."""
        self._thread.start()
        try:
            self._up.wait()
        except BaseException:  # Ctrl-C while models are loaded
            self.stop()
            raise
        if self._failure is not None:
            self._thread.join()
            raise self._failure
        return self

    @property
    def models(self) -> dict[str, dict[str, Any]]:
        """The facts about each model, by name."""
        return {} if self._service is None else self._service.models

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until it has stopped, for at most so long; return whether it has."""
        return self._down.wait(seconds)

    def stop_soon(self) -> None:
        """Take no more connections, and stop when the running requests are finished or the grace is over."""
        if self._http is not None:
            self._http.should_exit = True

    def reload_soon(self) -> None:
        """Read the models again in the background; what goes wrong is logged."""
        if self._loop is not None and self._service is not None:
            asyncio.run_coroutine_threadsafe(self._reload(self._service), self._loop)

    def stop(self) -> None:
        """Stop, and wait until it has."""
        self.stop_soon()
        if self._loop is not None and self._http is None:  # still loading
            self._loop.call_soon_threadsafe(self._main.cancel)
        self._thread.join()

    def __enter__(self) -> "Server":
        """Return the running server."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop."""
        self.stop()

    def __repr__(self) -> str:
        """Say where it listens and what it serves."""
        state = "stopped" if self._down.is_set() else f"at {self.url}"
        return f"Server({', '.join(self._sources)} {state})"

    def _repr_html_(self) -> str:
        """Link to the page, for a notebook."""
        return f'{", ".join(self._sources)} at <a href="{self.url}">{self.url}</a>'

    def _run(self) -> None:
        logging.getLogger("uvicorn").setLevel(logging.CRITICAL)  # what it says of requests, the watch says
        try:
            with asyncio.Runner() as runner:
                self._loop = runner.get_loop()
                self._main = self._loop.create_task(self._serve())
                runner.run(_awaited(self._main))
        except BaseException as failure:  # handed to the thread that waits
            self._failure = failure
        finally:
            self._socket.close()
            if self._folder is not None:
                self._folder.cleanup()
            self._down.set()
            self._up.set()

    async def _serve(self) -> None:
        from vitrail.serving.app import make_app
        from vitrail.serving.listener import listener
        from vitrail.serving.service import Service

        self._service = service = Service(self._sources, self.settings, Watch(self._log))
        await service.start()
        for name, facts in service.models.items():
            for sentence in facts["notes"]:
                self._note(f"{name}: {sentence}" if len(service.models) > 1 else sentence)
        self._http = http = listener(make_app(service, self._keys), self.settings)
        running = asyncio.create_task(http.serve(sockets=[self._socket]))
        while not http.started and not running.done():
            await asyncio.sleep(0.005)
        service.watch.event("listening", url=self.url, models={n: m["digest"] for n, m in service.models.items()})
        self._up.set()
        draining = asyncio.create_task(self._drain(http, service))
        await running
        draining.cancel()
        await service.close()
        service.watch.event("stopped")

    async def _drain(self, http: Any, service: "Service") -> None:
        """Refuse new requests from the moment on that the server is told to stop."""
        while not http.should_exit:
            await asyncio.sleep(0.05)
        service.draining = True
        service.watch.event("stopping", pending=service.fleet.pending)

    async def _reload(self, service: "Service") -> None:
        try:
            await service.reload()
        except (Refusal, VitrailError):
            return  # logged where it went wrong


async def _awaited(task: "asyncio.Task[None]") -> None:
    await task
