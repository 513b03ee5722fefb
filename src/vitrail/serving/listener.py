"""The HTTP server: uvicorn, with an end to connections that never finish their headers."""

import asyncio
from typing import Any

from uvicorn import Config, Server
from uvicorn.protocols.http.h11_impl import H11Protocol

from vitrail.serving.gate import App
from vitrail.serving.settings import ServeSettings

HEAD_SECONDS = 10.0
"""How long the head of a request may take."""
IDLE_SECONDS = 30
"""How long a connection may be idle between requests."""
MOST_HEAD = 2**16
MOST_CONNECTIONS = 1000


class PatientProtocol(H11Protocol):
    """uvicorn's own, which by itself waits for the rest of a head for ever."""

    _limit: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Expect a head."""
        super().connection_made(transport)
        self._expect()

    def data_received(self, data: bytes) -> None:
        """Stop the clock when the head is there; start it when another one begins."""
        if self._limit is None and (self.cycle is None or self.cycle.response_complete):
            self._expect()
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._relax()

    def on_response_complete(self) -> None:
        """Leave the time between requests to uvicorn."""
        self._relax()
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the clock."""
        self._relax()
        super().connection_lost(exc)

    def _expect(self) -> None:
        self._limit = self.loop.call_later(HEAD_SECONDS, self.transport.close)

    def _relax(self) -> None:
        if self._limit is not None:
            self._limit.cancel()
            self._limit = None


def listener(app: App, settings: ServeSettings) -> Server:
    """Return a server for the application; `serve(sockets=[...])` runs it."""
    protocol: Any = PatientProtocol
    config = Config(
        app,
        http=protocol,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=IDLE_SECONDS,
        timeout_graceful_shutdown=max(round(settings.grace), 1),
        limit_concurrency=MOST_CONNECTIONS,
        h11_max_incomplete_event_size=MOST_HEAD,
        backlog=1024,
    )
    return Server(config)
