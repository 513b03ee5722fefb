"""What is counted and logged: figures for Prometheus, and one JSON line for each request; never a content."""

import json
import time
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from vitrail.serving.metrics import IMAGES, SECONDS, Counter, Gauge, Histogram, Labels, exposition

Log = Callable[[str], None]
WINDOW = 30.0
"""Seconds over which images per second are taken."""


def unlogged(_: str) -> None:
    """Drop a line."""


class Watch:
    """The figures of one server."""

    def __init__(self, log: Log = unlogged) -> None:
        self._log = log
        self._recent: deque[tuple[float, int]] = deque()
        self.state: Callable[[], dict[str, dict[Labels, float]]] = dict
        """Returns what is now: queue length, workers, models; the service sets it."""
        self.requests = Counter("vitrail_requests_total", "Requests by path and status.")
        self.latency = Histogram("vitrail_request_seconds", "Time from the request's head to the last byte.", SECONDS)
        self.images = Counter("vitrail_images_total", "Images answered, by what became of them.")
        self.batches = Histogram("vitrail_batch_images", "Images that went through a model at once.", IMAGES)
        self.work = Counter("vitrail_worker_seconds_total", "Time that workers spent, by what they did.")
        self.restarts = Counter("vitrail_worker_restarts_total", "Workers that ended and were started again.")
        self.dropped = Counter("vitrail_requests_dropped_total", "Requests given up, by reason: gone, late.")

    def request(self, *, path: str, method: str, status: int, seconds: float, ident: str, **facts: Any) -> None:
        """Count and log a request."""
        self.requests.add(path=path, status=str(status))
        self.latency.add(seconds, path=path)
        self.event("request", id=ident, method=method, path=path, status=status, ms=round(1000 * seconds, 1), **facts)

    def answered(self, outcome: str) -> None:
        """Count one image: ok, or the status of what was wrong."""
        self.images.add(outcome=outcome)

    def worked(self, kind: str, images: int, seconds: float) -> None:
        """Count what a worker has done."""
        self.work.add(seconds, kind=kind)
        if kind == "compute":
            self.batches.add(float(images))
        if kind in ("compute", "explain"):
            self._recent.append((time.monotonic(), images))
            self._forget()

    def restarted(self) -> None:
        """Count and log a worker that ended."""
        self.restarts.add()
        self.event("worker_ended")

    def event(self, name: str, **facts: Any) -> None:
        """Log one line of JSON."""
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        self._log(json.dumps({"time": now, "event": name, **facts}))

    def exposition(self) -> str:
        """Write every figure for Prometheus."""
        self._forget()
        rate = sum(count for _, count in self._recent) / WINDOW
        state = self.state()
        gauges = [
            ("vitrail_queue_images", "Images that wait for a worker."),
            ("vitrail_pending_images", "Images that are not finished."),
            ("vitrail_workers_ready", "Workers that can compute."),
            ("vitrail_model_info", "Models that are served, with their digests."),
        ]
        counts: list[Counter | Gauge | Histogram] = [
            self.requests,
            self.latency,
            self.images,
            self.batches,
            self.work,
            self.restarts,
            self.dropped,
        ]
        now = [Gauge(name, text, state.get(name, {})) for name, text in gauges]
        speed = Gauge("vitrail_images_per_second", "Images computed, over 30 seconds.", {(): rate})
        return exposition([*counts, *now, speed])

    def _forget(self) -> None:
        while self._recent and self._recent[0][0] < time.monotonic() - WINDOW:
            self._recent.popleft()
