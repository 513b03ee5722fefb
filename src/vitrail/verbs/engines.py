"""Measure every engine on this machine with a model."""

import math
import os
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from vitrail.base.errors import ConfigError
from vitrail.base.notes import Note, logged
from vitrail.base.numbers import MOST_BATCH, check_whole
from vitrail.base.processor import has_bfloat16
from vitrail.base.progress import Progress, silent
from vitrail.base.readable import in_bytes
from vitrail.base.table import Table, Tabular
from vitrail.checkpoint.files import save
from vitrail.data import catalog
from vitrail.data.pixels.decode import to_channels
from vitrail.data.preprocessing import Preprocessing
from vitrail.data.transforms import preprocess
from vitrail.model.contract import Model
from vitrail.model.cost import cost
from vitrail.model.patches import Size
from vitrail.runtime.choice import EngineName, Precision, install_command, missing_packages
from vitrail.runtime.exported import ENGINES as RUNNERS
from vitrail.runtime.exported import is_exported
from vitrail.runtime.timing import gemm_peak
from vitrail.verbs.computing import computing
from vitrail.verbs.engine_trial import Trial, run_trial
from vitrail.verbs.network import FileSettings, open_network

IMAGES = 64
"""Images of the embedded sample on which engines are compared."""
MOST_SECONDS = 3600
"""For which passes of one batch are repeated."""
CLOSE = 1e-4
"""How far logits in float32 may be from torch's, as a share of their range."""


@dataclass(frozen=True, kw_only=True)
class EngineSpeed:
    """One engine with one batch."""

    engine: EngineName
    precision: Precision
    batch: int
    images_per_second: float
    """By the median pass."""
    median: float
    """Seconds of the median pass."""
    slow: float
    """Seconds within which 99% of the passes end."""
    memory: int
    """The most bytes of memory that the process had so far, with Python and the runtime."""
    start_up: float
    """Seconds from the start of the process to the first answer."""
    agreement: float
    """The share of images with the first class of the reference: torch in float32, or an exported file's own engine."""
    difference: float
    """The largest difference of a logit from the reference, as a share of the range of logits."""


@dataclass(frozen=True, kw_only=True, repr=False)
class EngineTable(Tabular):
    """Every engine on this machine, measured with one model."""

    model: str
    """The file."""
    threads: int
    """Threads for computing."""
    speeds: tuple[EngineSpeed, ...]
    """One for each engine, precision and batch."""
    peak: float
    """Multiply-accumulates in a second of the fastest product of matrices in float32."""
    limit: float
    """Images in a second at that speed, if the model were nothing but such products; NaN where its cost is unknown."""
    reference: str
    """The engine with which the others are compared."""
    failed: tuple[str, ...] = ()
    """Engines that were not measured, a sentence each."""

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values for JSON."""
        rows = [{name: _finite(value) for name, value in asdict(speed).items()} for speed in self.speeds]
        machine = {
            "reference": self.reference,
            "peak": self.peak,
            "limit": _finite(self.limit),
            "failed": list(self.failed),
        }
        return {"model": self.model, "threads": self.threads, "speeds": rows, **machine}

    def tables(self) -> list[Table]:
        """Return one table."""
        columns = ("engine", "batch", "images/s", "median", "99%", "memory", "start-up", "agreement", "difference")
        rows = tuple(
            (
                f"{speed.engine} {speed.precision}",
                str(speed.batch),
                f"{speed.images_per_second:.1f}",
                f"{1000 * speed.median:.1f} ms",
                f"{1000 * speed.slow:.1f} ms",
                in_bytes(speed.memory),
                f"{speed.start_up:.1f} s",
                "-" if math.isnan(speed.agreement) else f"{speed.agreement:.1%}",
                f"{speed.difference:.1e}",
            )
            for speed in self.speeds
        )
        limit = "" if math.isnan(self.limit) else f", {self.limit:.1f} images/s of this model"
        notes = (
            f"The limit in float32 is {2 * self.peak / 1e9:.0f} GFLOP/s{limit}: the fastest product of matrices here.",
            f"Agreement and difference are to {self.reference}, on {IMAGES} images of the embedded sample.",
            *self.failed,
        )
        title = f"{self.model}, {self.threads} threads"
        return [Table(title=title, columns=columns, rows=rows, notes=notes)]


def engines(
    model: str | os.PathLike[str] | Model,
    *,
    batch: Sequence[int] = (1, 8, 32),
    engine: Sequence[EngineName] = (),
    image_size: int | Size | None = None,
    num_heads: int | None = None,
    architecture: str | None = None,
    pickle: bool = False,
    threads: int | None = None,
    seconds: float = 2.0,
    progress: Progress = silent,
    note: Note = logged,
) -> EngineTable:
    """Measure the engines on this machine with a model: speed, memory, start-up, and whether they agree with torch.

        >>> model = vitrail.create("Ti/16", num_classes=2, image_size=32, depth=1, seed=0)
        >>> table = vitrail.engines(model, batch=[2], engine=["torch"], seconds=0.01)
        >>> [(speed.engine, speed.batch, speed.agreement) for speed in table.speeds]
        [('torch', 2, 1.0)]

    `model` is a file that `vitrail.predict` takes, or a model in memory. Each engine runs in a process of its own, for
    every number of images in `batch`, for about `seconds` each; `engine` names some, by default all that are
    installed. Times taken while other programs run are not worth much.
    """
    for number in batch:
        check_whole("batch", number, most=MOST_BATCH)
    if not batch:
        raise ConfigError("`batch` is empty, but takes numbers of images such as 1, 8, 32.")
    if not 0 < seconds <= MOST_SECONDS:
        raise ConfigError(f"`seconds` is {seconds}, but must be above 0 and at most {MOST_SECONDS:,}.")
    with tempfile.TemporaryDirectory(prefix="vitrail-") as folder:
        path, name = Path(folder) / "model.safetensors", "the model"
        if isinstance(model, str | os.PathLike):
            path, name = Path(model), os.fspath(model)
        else:
            save(model, path)
        file = FileSettings(
            image_size=image_size, num_heads=num_heads, architecture=architecture, pickle=pickle, device="cpu"
        )
        with open_network(os.fspath(path), file=file, threads=threads, note=note) as (network, _):
            pairs = candidates(path, getattr(network.engine, "precision", "float32"))
            macs = math.nan if network.config is None else cost(network.config).macs
            np.save(Path(folder) / "pixels.npy", sample_pixels(network.engine.preprocessing).numpy())
            used = torch.get_num_threads()
        with computing(threads, "cpu", note):
            peak = gemm_peak()
        speeds, failed = _measure_all(
            os.fspath(path), Path(folder), tuple(batch), file, pairs, tuple(engine), threads, seconds, progress
        )
    return EngineTable(
        model=name,
        threads=used,
        speeds=tuple(speeds),
        peak=peak,
        limit=peak / macs,
        reference=" in ".join(pairs[0]),
        failed=tuple(failed),
    )


def _measure_all(
    path: str,
    folder: Path,
    batches: tuple[int, ...],
    file: FileSettings,
    pairs: list[tuple[EngineName, Precision]],
    chosen: tuple[EngineName, ...],
    threads: int | None,
    seconds: float,
    progress: Progress,
) -> tuple[list[EngineSpeed], list[str]]:
    """Run a trial of each engine; the first is the one with which the others are compared."""
    speeds: list[EngineSpeed] = []
    failed: list[str] = []
    base = folder / f"{pairs[0][0]}-{pairs[0][1]}.npy"
    used = [pair for pair in pairs if not chosen or pair[0] in chosen or pair == pairs[0]]
    for name, precision in progress(used, total=len(used), title="measuring engines"):
        if missing_packages(name):
            failed.append(f"{name} is not installed; to measure it, run `{install_command(name)}`.")
            continue
        answers = folder / f"{name}-{precision}.npy"
        result = run_trial(
            Trial(
                model=path,
                engine=name,
                precision=precision,
                batches=batches,
                threads=threads,
                seconds=seconds,
                pixels=str(folder / "pixels.npy"),
                answers=str(answers),
                overrides=file.overrides,
                pickle=file.pickle,
            )
        )
        if "error" in result:
            failed.append(f"{name} in {precision}: {result['error']}")
            continue
        agreement, difference = compare(np.load(answers), np.load(base))
        for timing in result["timings"] if not chosen or name in chosen else ():
            speeds.append(
                _speed(name, precision, timing, start_up=result["start_up"], agreement=agreement, difference=difference)
            )
    return speeds, failed


def candidates(path: Path, precision: Precision) -> list[tuple[EngineName, Precision]]:
    """Return the engines and precisions that a file can have on this processor, the one of reference first."""
    if is_exported(path):
        return [(name, precision) for name in RUNNERS[path.suffix.lower()]]
    pairs: list[tuple[EngineName, Precision]] = [
        *(("torch", "float32"), ("compiled", "float32"), ("onnxruntime", "float32"), ("openvino", "float32"))
    ]
    if has_bfloat16():
        pairs += [("torch", "bfloat16"), ("compiled", "bfloat16"), ("openvino", "bfloat16")]
    return pairs


def _speed(
    name: EngineName,
    precision: Precision,
    timing: dict[str, Any],
    *,
    start_up: float,
    agreement: float,
    difference: float,
) -> EngineSpeed:
    from vitrail.runtime.timing import Timing

    times = Timing(batch=timing["batch"], seconds=tuple(timing["seconds"]))
    return EngineSpeed(
        engine=name,
        precision=precision,
        batch=times.batch,
        images_per_second=times.images_per_second,
        median=times.median,
        slow=times.slow,
        memory=timing["memory"],
        start_up=start_up,
        agreement=agreement,
        difference=difference,
    )


def compare(ours: np.ndarray, theirs: np.ndarray) -> tuple[float, float]:
    """Return the share of rows with the same largest number, and the largest difference as a share of the range."""
    span = max(float(theirs.max() - theirs.min()), float(np.finfo(np.float32).tiny))
    agreement = float((ours.argmax(1) == theirs.argmax(1)).mean())
    return agreement, float(np.abs(ours - theirs).max()) / span


def sample_pixels(how: Preprocessing, images: int = IMAGES) -> torch.Tensor:
    """Return images of the embedded sample at a model's size, some of every class."""
    dataset = catalog.open("sample", split="test")
    step = max(len(dataset) // images, 1)
    pixels = [
        preprocess(to_channels(dataset.image(index), how.channels), how) for index in range(0, images * step, step)
    ]
    return torch.stack(pixels)


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
