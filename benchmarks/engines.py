"""Every engine beside the best peers: B/16 and S/16 at 224 px, images in a second, start-up and memory.

    benchmarks/peers.sh /tmp/peers
    /tmp/peers/bin/pip install -c constraints.txt onnx onnxscript onnxruntime openvino nncf
    /tmp/peers/bin/python benchmarks/engines.py [--models B/16 S/16] [--batches 1 8 32] [--threads 2 1] [--rounds 8]

Contestants are processes of their own (`engine_contestants.py`): Vitrail's engines as `vitrail.predict` makes them,
timm and Hugging Face eager, compiled and frozen, timm's model exported to ONNX in ONNX Runtime and OpenVINO, and its
int8 by nncf. All compute the same function: erf GELU, class token, 1000 classes; ours take uint8 and normalise, theirs
get normalised numbers. Each round runs every contestant once, in random order (`contest.py`); ratios are to the fastest
peer of the same precision, and int8 is beside the fastest float32 peer too. The share of the GEMM peak is in float32,
by all products of the model: what the last block leaves out for the class token counts as done.

`--start-up` times whole processes, from start to end, that classify one photo: `vitrail predict` with the weights and
with the exported file, and their memory beside that of a process with a tiny model, the runtime's floor.

`--files FOLDER` keeps the graphs; `--rounds 0` only makes them and starts everything once. `--hold` waits for a line on
stdin between starting the contestants, which takes minutes, and timing them.
"""

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from contest import compare, fastest_peer, gemm_peak, machine, paired, race, save, show, store

import vitrail
from engine_contestants import CONTESTANTS, TIMM, inputs, pixels, timm_model
from vitrail.base.files import write_whole
from vitrail.runtime.graph import Graph, make_program
from vitrail.runtime.onnx_graph import onnx_bytes
from vitrail.runtime.quantise import Calibration, quantise

HERE = Path(__file__).parent
PASS_SECONDS = 0.4
"""About how long a contestant computes in each round."""


def make_files(name: str, folder: Path, kinds: list[str]) -> None:
    """Write the graphs that contestants run, unless they are there: ours and timm's, in float32 and in int8."""
    folder.mkdir(parents=True, exist_ok=True)
    ours, ours8, timm, timm8 = (
        folder / file for file in ("vitrail-float32.onnx", "vitrail-int8.onnx", "timm.onnx", "timm-int8.xml")
    )
    if any(kind.startswith("vitrail o") for kind in kinds) and not ours.exists():
        model = vitrail.create(name, gelu="erf", seed=0).eval()
        torch.nn.init.normal_(model.head.linear.weight, std=0.02)
        graph = Graph(model, vitrail.Preprocessing(image_size=(224, 224), mean=(0.5,) * 3, std=(0.5,) * 3))
        write_whole(ours, onnx_bytes(make_program(graph), graph.names))
    if any(kind.startswith("vitrail o") and is_int8(kind) for kind in kinds) and not ours8.exists():
        noise = Calibration(shown=pixels(8), compared=pixels(4))
        result = quantise(ours.read_bytes(), noise, agreement=0, threads=torch.get_num_threads(), note=print)
        write_whole(ours8, result.content)
    if any(kind.startswith("timm o") for kind in kinds) and not timm.exists():
        batch = {0: torch.export.Dim("batch")}
        program = torch.export.export(timm_model(name), (torch.from_numpy(inputs(2)),), dynamic_shapes=(batch,))
        exported = torch.onnx.export(program, input_names=["images"], external_data=False, dynamo=True)
        write_whole(timm, exported.model_proto.SerializeToString())
    if "timm openvino int8" in kinds and not timm8.exists():
        import nncf
        import openvino

        data = nncf.Dataset([inputs(8)[place : place + 1] for place in range(8)])
        graph = openvino.Core().read_model(timm)
        quantised = nncf.quantize(graph, data, subset_size=8, model_type=nncf.ModelType.TRANSFORMER)
        openvino.save_model(quantised, timm8)


class Worker:
    """A contestant in its process."""

    def __init__(self, kind: str, name: str, folder: Path, threads: int) -> None:
        words = [sys.executable, str(HERE / "engine_contestants.py"), kind, name, str(folder), str(threads)]
        settings = os.environ | {"OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads)}
        self.kind, self.log = kind, tempfile.TemporaryFile("w+")  # noqa: SIM115
        self.process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True, env=settings
        )
        self.memory = 0

    def run(self, batch: int, passes: int) -> float:
        """Compute, and return the seconds of one pass."""
        self.ask(batch, passes)
        return self.answer()

    def ask(self, batch: int, passes: int) -> None:
        """Let it compute."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{batch} {passes}\n")
        self.process.stdin.flush()

    def answer(self) -> float:
        """Wait for what was asked, and return the seconds of one pass."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith('{"seconds"'):
                answer = json.loads(line)
                self.memory = answer["memory"]
                return float(answer["seconds"])
        self.log.seek(0)
        raise RuntimeError(f"{self.kind} ended: {self.log.read()[-800:]}")

    def stop(self) -> None:
        """End the process."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def timed(
    workers: list[Worker], batch: int, rounds: int, passes: dict[str, int]
) -> tuple[dict[str, list[float]], float]:
    """Return the seconds of a pass of each contestant in each round, in an order of its own, and the GEMM peak.

    The peak is the median of the rounds' own: a machine that slows down slows products down too.
    """
    order, seconds, peaks = random.Random(0), {worker.kind: [] for worker in workers}, []  # noqa: S311
    for _ in range(rounds):
        for worker in order.sample(workers, len(workers)):
            seconds[worker.kind].append(worker.run(batch, passes[worker.kind]))
            time.sleep(0.02)  # threads of some runtimes look for work a little longer
        peaks.append(gemm_peak())
    return seconds, statistics.median(peaks)


def is_int8(kind: str) -> bool:
    """Return whether a contestant computes in int8."""
    return kind.endswith("int8")


def report(title: str, seconds: dict[str, list[float]], batch: int, flops: float, peak: float) -> dict[str, list]:
    """Print the contestants beside the fastest peer of their precision, and int8 beside float32."""
    tables = {}
    for precision, wanted in (("float32", False), ("int8", True)):
        own = {kind: times for kind, times in seconds.items() if is_int8(kind) == wanted}
        if own:
            name = f"{title}, {precision}"
            tables[name] = compare(own, ours="vitrail", images=batch, flops=batch * flops, peak=peak)
            show(name, tables[name])
    plain = {kind: times for kind, times in seconds.items() if not is_int8(kind)}
    for kind in [kind for kind in seconds if is_int8(kind) and plain]:
        peer = fastest_peer(plain, "vitrail")
        print(f"{kind} beside {peer} in float32: {paired(seconds[kind], plain[peer])}")
    return tables


def engines(args: argparse.Namespace) -> None:
    """Measure the engines with each model, number of threads and batch."""
    kinds = args.only or list(CONTESTANTS)
    for name in args.models:
        flops = 2.0 * vitrail.cost(name).macs
        for threads in args.threads:
            torch.set_num_threads(threads)
            with tempfile.TemporaryDirectory(prefix="vitrail-engines-") as place:
                folder = (args.files or Path(place)) / name.replace("/", "-")
                make_files(name, folder, kinds)
                workers = [Worker(kind, name, folder, threads) for kind in kinds]
                for batch in args.batches:  # compile and find memory, all at once
                    for worker in workers:
                        worker.ask(batch, 1)
                    for worker in workers:
                        worker.answer()
                passes = {
                    (worker.kind, batch): max(1, round(PASS_SECONDS / worker.run(batch, 1)))
                    for worker in workers
                    for batch in args.batches
                }
                if args.hold:
                    print("ready", flush=True)
                    sys.stdin.readline()
                for batch in args.batches if args.rounds else ():
                    counts = {worker.kind: passes[worker.kind, batch] for worker in workers}
                    seconds, peak = timed(workers, batch, args.rounds, counts)
                    title = f"{name}, batch {batch}, {threads} threads"
                    print(f"\n{title}; GEMM peak {peak / 1e9:.0f} GFLOP/s", flush=True)
                    save("engines", report(title, seconds, batch, flops, peak), peak)
                for worker in workers:
                    worker.stop()
                    print(f"{worker.kind:26} {worker.memory / 2**20:8.0f} MiB at most")


REPORT = """
import runpy, sys
try:
    runpy.run_module("vitrail", run_name="__main__", alter_sys=True)
finally:
    rows = open("/proc/self/status").read().splitlines()
    print(next(row.split()[1] for row in rows if row.startswith("VmHWM:")), file=sys.stderr)
"""
"""Runs the command, and prints its most memory; that which the system reports for a child begins with its parent's."""


def process_run(words: list[str]) -> float:
    """Return the seconds from the start of a command to its end."""
    start = time.perf_counter()
    subprocess.run([sys.executable, "-m", "vitrail", *words], capture_output=True, check=True)
    return time.perf_counter() - start


def process_memory(words: list[str]) -> int:
    """Return the most memory of a command, in bytes."""
    done = subprocess.run([sys.executable, "-c", REPORT, *words], capture_output=True, check=True, text=True)
    return int(done.stderr.split()[-1]) * 1024


def start_up(args: argparse.Namespace) -> None:
    """Time a first label with the weights and with an exported file, and measure the memory of both."""
    from PIL import Image

    with tempfile.TemporaryDirectory(prefix="vitrail-engines-") as place:
        folder = Path(place)
        noise = np.random.default_rng(0).integers(0, 256, (300, 400, 3), dtype=np.uint8)
        Image.fromarray(noise).save(folder / "photo.jpg", quality=90)
        tiny = vitrail.create("Ti/16", num_classes=2, depth=1, seed=0)
        vitrail.export(tiny, folder / "tiny.onnx", labels=["a", "b"])
        vitrail.save(tiny, folder / "tiny.safetensors", labels=["a", "b"])
        for name in args.models:
            model = vitrail.create(name, seed=0)
            vitrail.save(model, folder / "model.safetensors", labels=[str(number) for number in range(1000)])
            vitrail.export(folder / "model.safetensors", folder / "model.onnx", force=True)

            def words(file: str, engine: str, folder: Path = folder) -> list[str]:
                return ["predict", str(folder / file), str(folder / "photo.jpg"), "--engine", engine]

            files = {"torch": "model.safetensors", "native": "model.safetensors"}
            files |= {"onnxruntime": "model.onnx", "openvino": "model.onnx"}
            commands = {kind: words(file, kind) for kind, file in files.items()}
            runs = {kind: (lambda command=command: process_run(command)) for kind, command in commands.items()}
            seconds = race(runs, args.rounds)
            weights = 4 * vitrail.cost(model.config).parameters
            title = f"{name}: from the start of a process to its end, with one photo"
            print(f"\n{title}; weights {weights / 2**20:.0f} MiB")
            rows = {}
            for kind, times in seconds.items():
                share = paired(seconds["torch"], times)
                row: dict[str, object] = {
                    "seconds": statistics.median(times),
                    "times_torch": [share.median, share.low, share.high],
                }
                text = f"{kind:14}{statistics.median(times):8.2f} s   {share} the time of torch"
                if kind != "torch":
                    smallest = "tiny" + Path(files[kind]).suffix
                    most, floor = process_memory(commands[kind]), process_memory(words(smallest, kind))
                    row |= {"memory": most, "floor": floor, "above_floor_in_weights": (most - floor) / weights}
                    text += f"; memory {most / 2**20:.0f} MiB, floor {floor / 2**20:.0f}: "
                    text += f"{(most - floor) / weights:.2f}x the weights above it"
                print(text, flush=True)
                rows[kind] = row
            store("engines", {title: machine() | {"weights": weights, "rows": rows}})


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", default=["B/16", "S/16"], choices=list(TIMM))
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 8, 32])
    parser.add_argument("--threads", type=int, nargs="+", default=[2, 1])
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--only", nargs="+", choices=list(CONTESTANTS), help="contestants; all by default")
    parser.add_argument("--files", type=Path, help="a folder that keeps the graphs for the next time")
    parser.add_argument("--hold", action="store_true", help="wait for a line on stdin before timing")
    parser.add_argument("--start-up", action="store_true", help="measure start-up and memory instead")
    args = parser.parse_args()
    start_up(args) if args.start_up else engines(args)


if __name__ == "__main__":
    main()
