"""Our server as a process of its own, a model for it, and photos to send; for `benchmarks/serve.py`."""

import io
import os
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import numpy as np
from PIL import Image

import vitrail
from vitrail.data.preprocessing import preset


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
    """Our server as a process; what it logs and prints goes to a file beside the model."""

    def __init__(self, model: Path, port: int, *flags: str) -> None:
        self.port = port
        words = [sys.executable, "-m", "vitrail", "serve", str(model), "--port", str(port), *flags]
        self.log = model.parent / f"{port}.log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(words, stdout=log, stderr=log)
        try:
            wait_ready(port, "/readyz", self.process)
        except AssertionError:
            print(self.log.read_text(), file=sys.stderr)
            raise

    def family(self) -> tuple[list[int], list[int]]:
        """Return the processes from which workers come, and the workers."""
        parents = _children(self.process.pid)
        return parents, [worker for parent in parents for worker in _children(parent)]

    def memory(self) -> float:
        """MiB of the server and all its processes; what they share is counted once."""
        parents, workers = self.family()
        return sum(map(_proportional_kib, (self.process.pid, *parents, *workers))) / 1024

    def processor_seconds(self) -> float:
        """Time on processors of the server and all its processes that live."""
        parents, workers = self.family()
        return sum(map(processor_seconds, (self.process.pid, *parents, *workers)))

    def files(self) -> int:
        return len(list(Path(f"/proc/{self.process.pid}/fd").iterdir()))

    def figure(self, name: str) -> float:
        text = urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics").read().decode()
        return float(next(line.split()[-1] for line in text.splitlines() if line.startswith(name + " ")))

    def end(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)


def _children(pid: int) -> list[int]:
    try:
        return [
            int(word)
            for task in Path(f"/proc/{pid}/task").iterdir()
            for word in (task / "children").read_text().split()
        ]
    except OSError:  # it has ended
        return []


def processor_seconds(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _proportional_kib(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:"))


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
