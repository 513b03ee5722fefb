"""A server on this machine that publishes one file, slowly, in a process of its own: for downloads that are killed."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

BODY = bytes(range(251)) * 10_000
"""2.5 MB in which no two places near each other are alike."""
NAME = "tiny.bin"
PIECE, PAUSE = 2**16, 0.01
"""Bytes, and the seconds after them."""


class Publisher(BaseHTTPRequestHandler):
    """Answers with the file, or with the rest of it."""

    protocol_version = "HTTP/1.1"
    log: Path
    """Gets a line for each request: the first byte that was asked for."""

    def do_GET(self) -> None:
        """Send what was asked for."""
        start = int((self.headers.get("Range") or "bytes=0-").removeprefix("bytes=").rstrip("-"))
        with self.log.open("a") as file:
            file.write(f"{start}\n")
        if start >= len(BODY):
            self.send_error(416)
            return
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(BODY) - 1}/{len(BODY)}")
        self.send_header("ETag", '"one"')
        self.send_header("Content-Length", str(len(BODY) - start))
        self.end_headers()
        with suppress(BrokenPipeError, ConnectionResetError):
            for place in range(start, len(BODY), PIECE):
                self.wfile.write(BODY[place : place + PIECE])
                time.sleep(PAUSE)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def publishing(log: Path) -> Iterator[str]:
    """Publish the file while the block runs, and yield its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Publisher)
    server.daemon_threads = True
    Publisher.log = log
    process = os.fork()
    if not process:
        with suppress(BaseException):
            server.serve_forever(poll_interval=0.05)
        os._exit(0)
    server.socket.close()
    try:
        yield f"http://127.0.0.1:{server.server_port}/{NAME}"
    finally:
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
