"""The service under load and faults, on the loopback address, with bounded counts and times.

    peers     throughput at saturation and latency at half load, beside LitServe and plain FastAPI with timm
    overload  offered five times its capacity: goodput, memory, refusals, recovery
    mixed     good requests among broken, oversized, slow and half ones: every good answer compared with predict
    kills     workers killed at random under load

Usage: python benchmarks/serve.py SCENARIO [--model S/16] [--seconds 20] [--requests 10000] [--kills 50]
       [--peers /tmp/peers/bin/python]
Prints one JSON value.
"""

import argparse
import asyncio
import io
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import numpy as np
from http_load import ask, offer, request_of, saturate
from PIL import Image

import vitrail
from vitrail.data.preprocessing import preset

TIMM = {"Ti/16": "vit_tiny_patch16_224", "S/16": "vit_small_patch16_224", "B/16": "vit_base_patch16_224"}
HERE = Path(__file__).parent


def photo(seed: int, size: tuple[int, int] = (375, 500), form: str = "JPEG") -> bytes:
    """Soft noise, which a JPEG file of some 50 kB holds."""
    small = np.random.default_rng(seed).integers(0, 256, (size[0] // 8, size[1] // 8, 3), dtype=np.uint8)
    file = io.BytesIO()
    Image.fromarray(small).resize(size[::-1], Image.Resampling.BICUBIC).save(file, form, quality=90)
    return file.getvalue()


def write_model(name: str, side: int, folder: str) -> Path:
    """Save a model whose answers differ from image to image."""
    import torch

    model = vitrail.create(name, num_classes=1000, image_size=side, seed=0)
    with torch.no_grad():
        model.head.linear.weight.normal_(0, 0.5, generator=torch.Generator().manual_seed(1))
    pixels = preset("google", image_size=(side, side))
    return vitrail.save(model, Path(folder) / "model.safetensors", preprocessing=pixels)


class Served:
    """Our server as a process."""

    def __init__(self, model: Path, port: int, *flags: str) -> None:
        self.port = port
        words = [sys.executable, "-m", "vitrail", "serve", str(model), "--port", str(port), *flags]
        self.process = subprocess.Popen(words, stderr=subprocess.DEVNULL)
        wait_ready(port, "/readyz", self.process)

    def workers(self) -> list[int]:
        tasks = Path(f"/proc/{self.process.pid}/task").iterdir()
        nurseries = [int(pid) for task in tasks for pid in (task / "children").read_text().split()]
        listings = [Path(f"/proc/{pid}/task/{pid}/children") for pid in nurseries]
        return [int(pid) for listing in listings if listing.exists() for pid in listing.read_text().split()]

    def memory(self) -> float:
        """Resident MiB of the server and its workers."""
        pages = 0
        for pid in (self.process.pid, *self.workers()):
            try:
                pages += int(Path(f"/proc/{pid}/statm").read_text().split()[1])
            except OSError:
                continue
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**20

    def files(self) -> int:
        return len(list(Path(f"/proc/{self.process.pid}/fd").iterdir()))

    def figure(self, name: str) -> float:
        text = urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics").read().decode()
        return float(next(line.split()[-1] for line in text.splitlines() if line.startswith(name + " ")))

    def end(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)


def wait_ready(port: int, path: str, process: "subprocess.Popen[bytes]", seconds: float = 240.0) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        assert process.poll() is None, "the server ended before it answered"
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5).read()
        except OSError:
            time.sleep(0.5)
        else:
            return
    raise TimeoutError(port)


async def peers(options: argparse.Namespace, model: Path) -> dict:
    """Interleaved rounds: each server in turn, so that whatever else the machine does meets all of them."""
    ours = Served(model, 8301, "--max-queue", "256")
    others = {}
    ports, request = {"vitrail": 8301, "litserve": 8302, "fastapi": 8303}, request_of(photo(0))
    peak: dict[str, list[float]] = {name: [] for name in ports}
    try:
        for port, kind in ((8302, "litserve"), (8303, "fastapi")):
            words = [options.peers, str(HERE / "serve_peers.py"), kind, str(port), TIMM[options.model]]
            quiet = {"stdout": subprocess.DEVNULL}
            environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
            others[kind] = subprocess.Popen(
                words, env=environment | {"OMP_NUM_THREADS": "1" if kind == "litserve" else "2"}, **quiet
            )
            wait_ready(port, "/health" if kind == "litserve" else "/docs", others[kind])
        for port in ports.values():
            await saturate(port, request, concurrency=8, seconds=3)
        for _ in range(options.rounds):
            for name, port in ports.items():
                tally = await saturate(port, request, concurrency=options.concurrency, seconds=options.seconds)
                assert set(tally.statuses) == {200}, (name, tally.statuses)
                peak[name].append(tally.goodput)
        rate = 0.5 * max(float(np.median(peak["litserve"])), float(np.median(peak["fastapi"])))
        latency: dict[str, dict[str, list[float]]] = {name: {"median": [], "p99": []} for name in ports}
        for _ in range(options.rounds):
            for name, port in ports.items():
                tally = await offer(port, request, rate=rate, seconds=options.seconds)
                latency[name]["median"].append(1000 * tally.quantile(0.5))
                latency[name]["p99"].append(1000 * tally.quantile(0.99))
    finally:
        ours.end()
        for process in others.values():
            process.send_signal(signal.SIGINT)
            process.wait(30)
    best = max(float(np.median(peak[name])) for name in others)
    return {
        "images_per_second": peak,
        "ratio_to_best_peer": float(np.median(peak["vitrail"])) / best,
        "half_load_rate": rate,
        "latency_ms": latency,
    }


async def overload(options: argparse.Namespace, model: Path) -> dict:
    served, request = Served(model, 8311), request_of(photo(0))
    try:
        await saturate(8311, request, concurrency=8, seconds=3)
        peak = (await saturate(8311, request, concurrency=16, seconds=options.seconds)).goodput
        memory = [served.memory()]

        async def watch() -> None:
            while True:
                await asyncio.sleep(5)
                memory.append(served.memory())

        watcher = asyncio.create_task(watch())
        tally = await offer(8311, request, rate=5 * peak, seconds=options.long)
        watcher.cancel()
        recovered = time.perf_counter()
        status, _ = await ask(8311, request)
        return {
            "peak": peak,
            "offered": 5 * peak,
            "seconds": tally.seconds,
            "goodput": tally.goodput,
            "goodput_of_peak": tally.goodput / peak,
            "statuses": dict(tally.statuses),
            "refusal_ms": {
                "median": 1000 * tally.quantile(0.5, tally.refusals),
                "p99": 1000 * tally.quantile(0.99, tally.refusals),
                "max": 1000 * max(tally.refusals, default=0),
            },
            "memory_mib": [round(value) for value in memory],
            "recovery": {"status": status, "seconds": time.perf_counter() - recovered},
        }
    finally:
        served.end()


async def mixed(options: argparse.Namespace, model: Path) -> dict:
    """95% good requests, 5% bad ones of seven kinds; every good answer is compared with predict."""
    served, images = Served(model, 8321, "--max-body", "2", "--timeout", "60"), [photo(seed) for seed in range(32)]
    wanted = [dict(answer.top) for answer in vitrail.predict(model, images, top=5)]
    bad = {
        "text": (request_of(b"hello"), {415}),
        "broken": (request_of(images[0][:2000]), {200, 422}),
        "bomb": (request_of(_bomb()), {413}),
        "oversized": (request_of(bytes(3 * 2**20)), {413}),
    }
    counts: dict[str, int] = {}
    wrong: list[str] = []
    before = served.memory(), served.files()

    async def good(number: int) -> None:
        place = number % len(images)
        for _ in range(20):
            status, body = await ask(8321, request_of(images[place]), 120)
            if status != 429:
                break
            counts["429, tried again"] = counts.get("429, tried again", 0) + 1
            await asyncio.sleep(1)
        counts[f"good {status}"] = counts.get(f"good {status}", 0) + 1
        if status == 200:
            top = {entry["label"]: entry["probability"] for entry in json.loads(body)["results"][0]["top"]}
            if set(top) != set(wanted[place]) or any(abs(top[label] - wanted[place][label]) > 1e-5 for label in top):
                wrong.append(f"request {number}")

    async def evil(number: int) -> None:
        kind = [*bad, "half", "gone", "loris"][number % 7]
        if kind in bad:
            request, statuses = bad[kind]
            status, _ = await ask(8321, request, 120)
            counts[f"{kind} {status}"] = counts.get(f"{kind} {status}", 0) + 1
            if status not in statuses | {429}:
                wrong.append(f"{kind} {status}")
            return
        reader, writer = await asyncio.open_connection("127.0.0.1", 8321)
        whole = request_of(images[0])
        writer.write(
            {"half": whole[: len(whole) // 2], "gone": whole, "loris": b"POST /v1/predict HTTP/1.1\r\nX: "}[kind]
        )
        await asyncio.sleep(random.random() * 2)  # noqa: S311
        writer.close()
        del reader
        counts[kind] = counts.get(kind, 0) + 1

    gate = asyncio.Semaphore(options.concurrency)

    async def one(number: int) -> None:
        async with gate:
            await (evil(number // 20) if number % 20 == 0 else good(number))

    began = time.perf_counter()
    try:
        await asyncio.gather(*(one(number) for number in range(options.requests)))
        seconds = time.perf_counter() - began
        await asyncio.sleep(2)
        after = served.memory(), served.files()
        restarts, pending = served.figure("vitrail_worker_restarts_total"), served.figure("vitrail_pending_images")
    finally:
        code = served.end()
    return {
        "requests": options.requests,
        "seconds": seconds,
        "counts": counts,
        "wrong": wrong[:20],
        "memory_mib": [before[0], after[0]],
        "open_files": [before[1], after[1]],
        "worker_restarts": restarts,
        "pending_at_end": pending,
        "exit_code": code,
    }


def _bomb() -> bytes:
    import zlib

    png = photo(0, (16, 16), "PNG")
    header = b"IHDR" + (30_000).to_bytes(4, "big") * 2 + png[24:29]
    return png[:12] + header + zlib.crc32(header).to_bytes(4, "big") + png[33:]


async def kills(options: argparse.Namespace, model: Path) -> dict:
    """Kill a random worker at random times while good requests come at a third of the capacity."""
    served, images = Served(model, 8331), [photo(seed) for seed in range(8)]
    wanted = [max(dict(answer.top).items(), key=lambda pair: pair[1])[0] for answer in vitrail.predict(model, images)]
    peak = (await saturate(8331, request_of(images[0]), concurrency=8, seconds=5)).goodput
    statuses: dict[int, int] = {}
    wrong = killed = 0
    stop = asyncio.Event()

    async def one(place: int) -> None:
        nonlocal wrong
        try:
            status, body = await ask(8331, request_of(images[place]), 120)
        except (OSError, TimeoutError, asyncio.IncompleteReadError):
            status, body = 0, b""
        statuses[status] = statuses.get(status, 0) + 1
        if status == 200 and json.loads(body)["results"][0]["top"][0]["label"] != wanted[place]:
            wrong += 1

    async def load() -> None:
        tasks, number = [], 0
        while not stop.is_set():
            tasks.append(asyncio.create_task(one(number % len(images))))
            number += 1
            await asyncio.sleep(3 / peak)
        await asyncio.gather(*tasks)

    loading = asyncio.create_task(load())
    chance = random.Random(0)  # noqa: S311
    try:
        while killed < options.kills:
            await asyncio.sleep(chance.uniform(0.2, 2 * options.pause))
            if workers := served.workers():
                os.kill(chance.choice(workers), signal.SIGKILL)
                killed += 1
        await asyncio.sleep(2)
        stop.set()
        await loading
    finally:
        code = served.end()
    total = sum(statuses.values())
    return {
        "kills": killed,
        "requests": total,
        "statuses": statuses,
        "wrong": wrong,
        "availability": statuses.get(200, 0) / total,
        "exit_code": code,
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("scenario", choices=["peers", "overload", "mixed", "kills"])
    parser.add_argument("--model", default="S/16", choices=list(TIMM))
    parser.add_argument("--image-size", type=int, default=224)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--long", type=float, default=120.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--concurrency", type=int, default=16)
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--pause", type=float, default=4.0)
    parser.add_argument("--peers", default="/tmp/peers/bin/python")  # noqa: S108
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        model = write_model(options.model, options.image_size, folder)
        scenario = {"peers": peers, "overload": overload, "mixed": mixed, "kills": kills}[options.scenario]
        result = asyncio.run(scenario(options, model))
    print(
        json.dumps(
            {"scenario": options.scenario, "model": options.model, "image_size": options.image_size, **result}, indent=1
        )
    )


if __name__ == "__main__":
    main()
