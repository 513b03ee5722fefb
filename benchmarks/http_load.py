"""A load on one HTTP server of this machine: fixed concurrency, or a fixed rate measured from the intended time."""

import asyncio
import time
from collections import Counter
from dataclasses import dataclass, field

BOUNDARY = b"vitrail-load"
HOST = "127.0.0.1"


@dataclass
class Tally:
    """What came back."""

    seconds: float = 0.0
    latencies: list[float] = field(default_factory=list)
    refusals: list[float] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)
    answers: dict[int, bytes] = field(default_factory=dict)

    @property
    def goodput(self) -> float:
        return self.statuses[200] / self.seconds

    def quantile(self, share: float, values: list[float] | None = None) -> float:
        ordered = sorted(self.latencies if values is None else values)
        return ordered[min(int(share * len(ordered)), len(ordered) - 1)] if ordered else float("nan")


def request_of(image: bytes, path: str = "/v1/predict", *, extra: bytes = b"") -> bytes:
    """One image as multipart, as a client sends it."""
    part = b'--%s\r\nContent-Disposition: form-data; name="images"; filename="x.jpg"\r\n' % BOUNDARY
    body = part + b"Content-Type: image/jpeg\r\n\r\n" + image + b"\r\n--%s--\r\n" % BOUNDARY
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(body)}\r\n".encode() + extra
    return head + b"Content-Type: multipart/form-data; boundary=%s\r\n\r\n" % BOUNDARY + body


async def answer_of(reader: asyncio.StreamReader) -> tuple[int, bytes, bool]:
    """Read one answer: the status, the body, and whether the connection stays open."""
    head = await reader.readuntil(b"\r\n\r\n")
    lines = head.lower().split(b"\r\n")
    length = next((int(line.split(b":")[1]) for line in lines if line.startswith(b"content-length:")), 0)
    return int(head.split(b" ", 2)[1]), await reader.readexactly(length), b"connection: close" not in lines


async def ask(port: int, request: bytes, seconds: float = 60.0) -> tuple[int, bytes]:
    """Send one request on a connection of its own."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**24)
    try:
        writer.write(request)
        async with asyncio.timeout(seconds):
            await writer.drain()
            status, body, _ = await answer_of(reader)
        return status, body
    finally:
        writer.close()


async def saturate(port: int, request: bytes, *, concurrency: int, seconds: float) -> Tally:
    """Keep so many requests going, each connection sending the next when it is answered."""
    tally, end = Tally(), time.perf_counter() + seconds
    began = time.perf_counter()

    async def client() -> None:
        while time.perf_counter() < end:
            try:
                reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**24)
                stays = True
                while stays and time.perf_counter() < end:
                    sent = time.perf_counter()
                    writer.write(request)
                    status, _, stays = await answer_of(reader)
                    tally.statuses[status] += 1
                    (tally.latencies if status == 200 else tally.refusals).append(time.perf_counter() - sent)
                writer.close()
            except (OSError, asyncio.IncompleteReadError):
                tally.statuses[0] += 1

    await asyncio.gather(*(client() for _ in range(concurrency)))
    tally.seconds = time.perf_counter() - began
    return tally


async def offer(port: int, request: bytes, *, rate: float, seconds: float) -> Tally:
    """Send at a fixed rate, whatever comes back; a late start counts as latency (no coordinated omission)."""
    tally, began = Tally(), time.perf_counter()
    idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def one(intended: float) -> None:
        while True:
            reused = bool(idle)
            try:
                reader, writer = idle.pop() if reused else await asyncio.open_connection(HOST, port, limit=2**24)
                writer.write(request)
                status, _, stays = await answer_of(reader)
                break
            except (OSError, asyncio.IncompleteReadError) as error:
                if reused and not getattr(error, "partial", b""):
                    continue  # a server may close a connection that was idle for long
                tally.statuses[0] += 1
                return
        tally.statuses[status] += 1
        (tally.latencies if status == 200 else tally.refusals).append(time.perf_counter() - intended)
        if stays:
            idle.append((reader, writer))
        else:
            writer.close()

    tasks = []
    for number in range(int(rate * seconds)):
        intended = began + number / rate
        await asyncio.sleep(max(intended - time.perf_counter(), 0))
        tasks.append(asyncio.create_task(one(intended)))
    await asyncio.gather(*tasks)
    tally.seconds = time.perf_counter() - began
    for _, writer in idle:
        writer.close()
    return tally
