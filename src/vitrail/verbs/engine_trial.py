"""One engine in a process of its own: how fast it is, its memory, and its answers for some images.

The process is `python -m vitrail.verbs.engine_trial`; it reads a job as JSON from stdin and writes JSON to stdout. An
engine that ends its process, as some do on virtual machines that claim instructions which trap, ends only this one.
"""

import json
import os
import subprocess
import sys
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from vitrail.base.errors import VitrailError
from vitrail.base.notes import unheard
from vitrail.base.settings import from_dict, to_dict
from vitrail.runtime.choice import EngineChoice

SECONDS = 1800.0
"""How long a trial may take."""


@dataclass(frozen=True, kw_only=True)
class Trial:
    """What is measured."""

    model: str
    """A file that `vitrail predict` takes."""
    choice: EngineChoice
    """What computes."""
    batches: tuple[int, ...]
    """Images in a pass; each is measured."""
    threads: int | None
    seconds: float
    """How long passes of each batch are repeated."""
    pixels: str
    """An `.npy` with images at the model's size, for the answers."""
    answers: str
    """Where the logits for them are written, as `.npy`."""
    overrides: dict[str, Any]
    """Settings of the file."""
    pickle: bool


def run_trial(trial: Trial) -> dict[str, Any]:
    """Measure in a new process; an engine that cannot run the model has only an `error`."""
    job = {**to_dict(trial), "started": time.time()}
    command = [sys.executable, "-m", "vitrail.verbs.engine_trial"]
    try:
        done = subprocess.run(  # noqa: S603  (our own program, with the Python that is running)
            command, input=json.dumps(job).encode(), capture_output=True, timeout=SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return {"error": f"it did not end within {SECONDS:.0f} seconds"}
    lines = done.stdout.splitlines()
    if done.returncode or not lines:
        last = done.stderr.decode(errors="replace").strip().splitlines()[-1:] or ["nothing was written"]
        return {"error": f"its process ended with code {done.returncode}: {last[0][:200]}"}
    return json.loads(lines[-1])


def measure(job: dict[str, Any]) -> dict[str, Any]:
    """Open the model, answer for the images, and time every batch."""
    import numpy as np
    import torch

    from vitrail.runtime.timing import time_engine
    from vitrail.verbs.network import FileSettings, open_network

    started = job.pop("started")
    trial = from_dict(Trial, job)
    file = FileSettings(pickle=trial.pickle, device="cpu", **trial.overrides)
    with open_network(
        trial.model, file=file, threads=trial.threads, note=unheard, choice=trial.choice, batch=trial.batches[0]
    ) as (network, _):
        engine = network.engine
        images = torch.from_numpy(np.load(trial.pixels))
        answer = engine.logits if engine.num_outputs else engine.features
        answer(images[:1])
        start_up = time.time() - started
        answers = torch.cat([answer(part).float().cpu() for part in images.split(8)])
        np.save(trial.answers, answers.numpy())
        timings = []
        for batch in trial.batches:
            engine = _for_batch(engine, batch)
            timing = time_engine(engine, batch, seconds=trial.seconds)
            timings.append({**asdict(timing), "memory": peak_memory()})
    return {"start_up": start_up, "timings": timings}


def _for_batch(engine: Any, batch: int) -> Any:
    """Let torch.compile see the batch that is timed."""
    from dataclasses import replace

    from vitrail.runtime.engine import TorchEngine

    compiled = isinstance(engine, TorchEngine) and engine.compiled_batch not in (None, batch)
    return replace(engine, compiled_batch=batch) if compiled else engine


def peak_memory() -> int:
    """Return the most bytes of memory that this process had so far."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) * 1024
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def end_with_parent() -> None:
    """End this process soon after the one that started it, however that one ended."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def main() -> None:
    """Do the job on stdin."""
    end_with_parent()
    try:
        result = measure(json.loads(sys.stdin.read()))
    except VitrailError as error:
        result = {"error": str(error)}
    sys.stdout.write("\n" + json.dumps(result) + "\n")


if __name__ == "__main__":
    main()
