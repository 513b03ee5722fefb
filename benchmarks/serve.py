"""The service under load and faults, on the loopback address, with bounded counts and times.

    peers     throughput at saturation and latency at half load, beside LitServe and plain FastAPI with timm
    overload  offered five times its capacity: goodput, memory, refusals, recovery
    mixed     good requests among broken, oversized, slow and half ones: every good answer compared with predict
    kills     workers killed at random under load

Usage: python benchmarks/serve.py SCENARIO [--model S/16] [--seconds 20] [--requests 10000] [--kills 50]
       [--peers /tmp/peers/bin/python] [--flags=--batch=8,--engine=auto] [--output FILE]
Prints one JSON value. `--peers` is the Python of benchmarks/peers.sh, with `pip install litserve` beside.
"""

import argparse
import asyncio
import json
import platform
import sys
import tempfile
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from serve_contest import CONTESTANTS, TIMM, peers
from serve_faults import kills, mixed, overload
from served import write_model

SCENARIOS = {"peers": peers, "overload": overload, "mixed": mixed, "kills": kills}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("scenario", choices=list(SCENARIOS))
    parser.add_argument("--model", default="S/16", choices=list(TIMM))
    parser.add_argument("--image-size", type=int, default=224)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--long", type=float, default=120.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--concurrency", type=int, default=16)
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--pause", type=float, default=4.0)
    parser.add_argument("--contestants", default=CONTESTANTS, type=lambda text: text.split(","))
    parser.add_argument("--flags", default=(), type=lambda text: text.split(","), help="for our server, by commas")
    parser.add_argument("--peers", default="/tmp/peers/bin/python")  # noqa: S108
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        model = write_model(options.model, options.image_size, folder)
        result = asyncio.run(SCENARIOS[options.scenario](options, model))
    record = {
        "command": " ".join(["python", "benchmarks/serve.py", *sys.argv[1:]]),
        "date": datetime.now(UTC).date().isoformat(),
        "torch": version("torch"),
        "machine": f"{platform.machine()}, {platform.system()}",
        "model": options.model,
        "image_size": options.image_size,
        **result,
    }
    text = json.dumps(record, indent=1) + "\n"
    if options.output:
        options.output.write_text(text)
    print(text, end="")


if __name__ == "__main__":
    main()
