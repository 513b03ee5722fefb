"""The door: who may come in, how much is let in, and one line in the log for everyone.

Plain ASGI around the application, so that a refusal costs little and the body of a refused request is not read.
"""

import asyncio
import hmac
import json
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from vitrail.serving.refusals import Refusal, error_content
from vitrail.serving.service import Service

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

OPEN = ("/healthz", "/readyz", "/docs", "/openapi.json", "/", "/favicon.ico")
"""Paths that need no key: they tell nothing about the model."""
STATIC = "/page/"
PATHS = ("/v1/predict", "/v1/model", "/v1/models", "/v1/labels", "/v1/reload", "/metrics", *OPEN)
LOCAL = ("localhost", "127.0.0.1", "::1")
FAULT = error_content("internal", "the server has a fault; its log has the place.")
CLOSED = 499
"""The status in the log of a request whose client has gone."""


class Gate:
    """ASGI middleware around everything else."""

    def __init__(self, app: App, service: Service, keys: tuple[bytes, ...]) -> None:
        self.app, self.service, self.keys = app, service, keys

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request in, or refuse it; count and log it in any case."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, status, ident = time.monotonic(), 0, secrets.token_hex(8)
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        scope["vitrail"] = facts = {"began": began}

        async def sending(message: MutableMapping[str, Any]) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", []), (b"x-request-id", ident.encode()), *SAFETY]
            await send(message)

        try:
            self._check(scope, headers, began)
            await self.app(scope, receive, sending)
        except Refusal as refusal:
            await answer(sending, refusal.status, refusal.content, refusal.headers)
        except asyncio.CancelledError:  # the time of grace is over
            if not status:
                await answer(sending, 503, error_content("stopping", "the server is stopping."), {"retry-after": "5"})
        except Exception as error:  # a fault of ours: its text may have contents, so that only its kind is logged
            self.service.watch.event("fault", id=ident, kind=type(error).__name__, at=_place(error))
            if not status:
                await answer(sending, 500, FAULT)
        finally:
            extra = {name: value for name, value in facts.items() if name != "began"}
            seconds = time.monotonic() - began
            self.service.watch.request(
                path=_path(scope["path"]),
                method=_word(scope["method"]),
                status=status or CLOSED,
                seconds=seconds,
                ident=ident,
                **extra,
            )

    def _check(self, scope: Scope, headers: Mapping[str, str], began: float) -> None:
        path, settings = scope["path"], self.service.settings
        if not self.keys and _host(headers.get("host", "")) not in (*LOCAL, settings.host):
            raise Refusal(403, "wrong_host", "the server answers to names of this machine only.")
        origin = headers.get("origin")
        if origin is not None and scope["method"] not in ("GET", "HEAD", "OPTIONS"):
            same = urlsplit(origin).netloc == headers.get("host")
            if not same and origin not in settings.cors and "*" not in settings.cors:
                raise Refusal(403, "wrong_origin", "pages of other sites may not call this server.")
        if path in OPEN or path.startswith(STATIC) or scope["method"] == "OPTIONS":
            return
        if self.keys and not self._has_key(headers):
            raise Refusal(401, "wrong_key", "send a valid key in the header `Authorization: Bearer KEY`.")
        if path == "/v1/reload" and not self.keys:
            raise Refusal(403, "no_key", "the server was started without keys; send it SIGHUP to reload.")
        if path.endswith("/predict") and scope["method"] == "POST":
            if self.service.draining:
                raise Refusal(503, "stopping", "the server is stopping.", retry=5.0)
            self.service.check_room(1, began + settings.timeout)

    def _has_key(self, headers: Mapping[str, str]) -> bool:
        """Compare with every key, each in constant time."""
        kind, _, bearer = headers.get("authorization", "").partition(" ")
        key = (bearer.strip() if kind.lower() == "bearer" else headers.get("x-api-key", "")).encode()
        matches = [hmac.compare_digest(key, known) for known in self.keys]
        return any(matches)


SAFETY = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
)


async def answer(send: Send, status: int, content: Any, headers: Mapping[str, str] | None = None) -> None:
    """Send JSON."""
    body = json.dumps(content).encode()
    pairs = {"content-type": "application/json", "content-length": str(len(body)), **(headers or {})}
    encoded = [(name.encode(), value.encode()) for name, value in pairs.items()]
    await send({"type": "http.response.start", "status": status, "headers": encoded})
    await send({"type": "http.response.body", "body": body})


def _path(path: str) -> str:
    """Return a path as it is counted: names of models and unknown paths are not kept."""
    if path.startswith("/v1/models/"):
        return "/v1/models/NAME/predict" if path.endswith("/predict") else "/v1/models/NAME"
    return path if path in PATHS else "/page/" if path.startswith(STATIC) else "other"


def _word(method: str) -> str:
    return method if method in ("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH") else "other"


def _host(header: str) -> str:
    try:
        return urlsplit(f"//{header}").hostname or ""
    except ValueError:
        return ""


def _place(error: Exception) -> str:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return "" if trace is None else f"{Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}"
