"""Throughput and latency of our server beside LitServe and plain FastAPI; a scenario of `benchmarks/serve.py`."""

import argparse
import os
import random
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
from contest import paired
from http_load import offer, request_of, saturate
from served import Served, photo, processor_seconds, wait_ready

TIMM = {"Ti/16": "vit_tiny_patch16_224", "S/16": "vit_small_patch16_224", "B/16": "vit_base_patch16_224"}
HERE = Path(__file__).parent
CONTESTANTS = "vitrail,vitrail auto,litserve,fastapi"
"""Ours with an engine behind its name, and the peers."""
FIRST_PORT = 8301
PEERS = ("litserve", "fastapi")
PATIENT = ("--max-queue", "256", "--max-wait", "60")
"""Every request is answered, however long it waits, as by the peers."""


class Peer:
    """Another server, which stands still while it is not its turn: an idle LitServe looks for work all the time."""

    def __init__(self, python: str, kind: str, port: int, model: str) -> None:
        words = [python, str(HERE / "serve_peers.py"), kind, str(port), TIMM[model]]
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        self.process = subprocess.Popen(
            words,
            env=environment | {"OMP_NUM_THREADS": "1" if kind == "litserve" else "2"},
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )
        wait_ready(port, "/health" if kind == "litserve" else "/docs", self.process)

    def signal(self, number: int) -> None:
        os.killpg(self.process.pid, number)

    def processor_seconds(self) -> float:
        """Time on processors of all processes of the server."""
        pids = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
        return sum(processor_seconds(pid) for pid in pids if _group(pid) == self.process.pid)

    def end(self) -> None:
        self.signal(signal.SIGCONT)
        self.signal(signal.SIGTERM)
        try:
            self.process.wait(15)
        except subprocess.TimeoutExpired:
            self.signal(signal.SIGKILL)


def _group(pid: int) -> int:
    try:
        return os.getpgid(pid)
    except ProcessLookupError:
        return 0


async def peers(options: argparse.Namespace, model: Path) -> dict:
    """Rounds, in each of which every server has its turn, in random order, at saturation and then at half load."""
    servers: dict[str, Served | Peer] = {}
    ports = {name: FIRST_PORT + place for place, name in enumerate(options.contestants)}
    request, chance = request_of(photo(0)), random.Random(0)  # noqa: S311
    peak: dict[str, list[float]] = {name: [] for name in options.contestants}
    cost: dict[str, list[float]] = {name: [] for name in options.contestants}
    latency: dict[str, list[list[float]]] = {name: [] for name in options.contestants}
    try:
        for name, port in ports.items():
            if name in PEERS:
                servers[name] = Peer(options.peers, name, port, options.model)
            else:
                _, *engine = name.split()
                flags = ("--engine", *engine) if engine else ()
                servers[name] = Served(model, port, *PATIENT, *flags, *options.flags)
            await saturate(port, request, concurrency=8, seconds=3)
            if name in PEERS:
                servers[name].signal(signal.SIGSTOP)

        async def turns(act) -> None:
            for name in chance.sample(list(servers), len(servers)):
                if name in PEERS:
                    servers[name].signal(signal.SIGCONT)
                await act(name, ports[name])
                if name in PEERS:
                    time.sleep(0.2)
                    servers[name].signal(signal.SIGSTOP)

        async def fill(name: str, port: int) -> None:
            before = servers[name].processor_seconds()
            tally = await saturate(port, request, concurrency=options.concurrency, seconds=options.seconds)
            assert set(tally.statuses) == {200}, (name, tally.statuses)
            peak[name].append(tally.goodput)
            cost[name].append(1000 * (servers[name].processor_seconds() - before) / tally.statuses[200])

        for _ in range(options.rounds):
            await turns(fill)
        best = max((name for name in peak if name in PEERS), key=lambda name: np.median(peak[name]), default="vitrail")
        rate = 0.5 * float(np.median(peak[best]))

        async def halve(name: str, port: int) -> None:
            tally = await offer(port, request, rate=rate, seconds=options.seconds)
            assert set(tally.statuses) == {200}, (name, tally.statuses)
            latency[name].append(tally.latencies)

        for _ in range(options.rounds):
            await turns(halve)
    finally:
        for server in servers.values():
            server.end()
    return {
        "images_per_second": {name: [round(value, 2) for value in rounds] for name, rounds in peak.items()},
        "processor_ms_per_image": {name: [round(value, 1) for value in rounds] for name, rounds in cost.items()},
        "best_peer": best,
        "ratio_to_best_peer": {
            name: asdict(paired([1 / value for value in peak[name]], [1 / value for value in peak[best]]))
            for name in peak
        },
        "half_load_rate": rate,
        "latency_ms": {name: _quantiles(rounds) for name, rounds in latency.items()},
    }


def _quantiles(rounds: Sequence[Sequence[float]]) -> dict[str, object]:
    """Of all requests together, and of each round."""
    everything = [value for values in rounds for value in values]

    def milliseconds(values: Sequence[float], share: float) -> float:
        return round(1000 * float(np.quantile(values, share)), 1)

    return {
        "requests": len(everything),
        "median": milliseconds(everything, 0.5),
        "p99": milliseconds(everything, 0.99),
        "median_by_round": [milliseconds(values, 0.5) for values in rounds],
        "p99_by_round": [milliseconds(values, 0.99) for values in rounds],
    }
