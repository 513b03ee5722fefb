"""Scenarios of `benchmarks/serve.py` in which something goes wrong: too much load, bad requests, dying workers."""

import argparse
import asyncio
import json
import os
import random
import signal
import time
import zlib
from pathlib import Path

from http_load import ask, offer, request_of, saturate
from served import Served, photo

import vitrail


async def overload(options: argparse.Namespace, model: Path) -> dict:
    """Five times as many requests as it can answer, for two minutes; then none but one after the other."""
    served, request = Served(model, 8311, *options.flags), request_of(photo(0))
    try:
        await saturate(8311, request, concurrency=8, seconds=5)
        peak = (await saturate(8311, request, concurrency=16, seconds=options.seconds)).goodput
        alone = await _latency(request)
        memory = [served.memory()]

        async def watch() -> None:
            while True:
                await asyncio.sleep(5)
                memory.append(await asyncio.to_thread(served.memory))

        watcher = asyncio.create_task(watch())
        load = asyncio.create_task(offer(8311, request, rate=5 * peak, seconds=options.long))
        await asyncio.sleep(options.long)
        recovery = await _recovery(request, 2 * alone)
        tally = await load
        watcher.cancel()
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
            "answered_ms": {"median": 1000 * tally.quantile(0.5), "p99": 1000 * tally.quantile(0.99)},
            "memory_mib": [round(value) for value in memory],
            "alone_ms": 1000 * alone,
            "recovery_seconds": recovery,
            "exit_code": served.end(),
        }
    finally:
        served.process.kill()


async def _latency(request: bytes, count: int = 5) -> float:
    """The time of one request alone, the slowest of a few."""
    slowest = 0.0
    for _ in range(count):
        began = time.perf_counter()
        await ask(8311, request)
        slowest = max(slowest, time.perf_counter() - began)
    return slowest


async def _recovery(request: bytes, usual: float) -> float:
    """Seconds from now to the first answer that takes as long as usual."""
    began = time.perf_counter()
    while time.perf_counter() - began < 60:
        sent = time.perf_counter()
        status, _ = await ask(8311, request)
        if status == 200 and time.perf_counter() - sent <= usual:
            return time.perf_counter() - began
        await asyncio.sleep(0.05)
    return float("inf")


async def mixed(options: argparse.Namespace, model: Path) -> dict:
    """95% good requests, 5% bad ones of seven kinds; every good answer is compared with predict."""
    served, images = (
        Served(model, 8321, "--max-body", "2", "--timeout", "60", *options.flags),
        [photo(seed) for seed in range(32)],
    )
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
    png = photo(0, (16, 16), "PNG")
    header = b"IHDR" + (30_000).to_bytes(4, "big") * 2 + png[24:29]
    return png[:12] + header + zlib.crc32(header).to_bytes(4, "big") + png[33:]


async def kills(options: argparse.Namespace, model: Path) -> dict:
    """Kill a random worker at random times while good requests come at a third of the capacity."""
    served, images = Served(model, 8331, *options.flags), [photo(seed) for seed in range(8)]
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
            if workers := served.family()[1]:
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
