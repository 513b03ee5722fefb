"""A server on 127.0.0.1 that publishes files, and misbehaves as it is told."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Handler = Callable[[BaseHTTPRequestHandler, int], None]
"""Answers the request with this number, counted from 0."""


@dataclass
class Standin:
    """A running server: what it was asked, and where it is."""

    port: int
    requests: list[tuple[str, dict[str, str]]] = field(default_factory=list)

    def at(self, path: str) -> str:
        return f"http://127.0.0.1:{self.port}/{path}"

    @property
    def ranges(self) -> list[str | None]:
        return [headers.get("range") for _, headers in self.requests]


@contextmanager
def serving(answer: Handler) -> Iterator[Standin]:
    class Answering(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            number = len(standin.requests)
            standin.requests.append((self.path, {name.lower(): value for name, value in self.headers.items()}))
            try:
                answer(self, number)
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True

        do_HEAD = do_GET  # noqa: N815 - as the library has it

        def log_message(self, *words: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
    server.daemon_threads = True
    standin = Standin(port=server.server_port)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield standin
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def send(
    request: BaseHTTPRequestHandler,
    body: bytes,
    *,
    etag: str | None = '"one"',
    cut: int | None = None,
    ranges: bool = True,
    **headers: str,
) -> None:
    """Send a file as a good server does, with ranges; `cut` ends the connection after this many bytes of the body."""
    asked, condition = request.headers.get("Range"), request.headers.get("If-Range")
    start = 0
    if ranges and asked and (condition is None or condition == etag):
        start = int(asked.removeprefix("bytes=").rstrip("-"))
        if start >= len(body):
            status(request, 416)
            return
    request.send_response(206 if start else 200)
    if start:
        request.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
    if etag:
        request.send_header("ETag", etag)
    for name, value in headers.items():
        request.send_header(name.replace("_", "-"), value)
    request.send_header("Content-Length", str(len(body) - start))
    request.end_headers()
    rest = body[start:]
    request.wfile.write(rest if cut is None else rest[:cut])
    request.wfile.flush()
    if cut is not None:
        request.close_connection = True


def status(request: BaseHTTPRequestHandler, code: int, **headers: str) -> None:
    """Send an answer without a body."""
    request.send_response(code)
    for name, value in headers.items():
        request.send_header(name.replace("_", "-"), value)
    request.send_header("Content-Length", "0")
    request.end_headers()
