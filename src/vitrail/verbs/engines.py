"""Measure every engine on this machine with a model."""

import math
import os
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from vitrail.base.errors import ConfigError
from vitrail.base.notes import Note, logged
from vitrail.base.numbers import MOST_BATCH, check_whole
from vitrail.base.processor import has_bfloat16
from vitrail.base.progress import Progress, silent
from vitrail.checkpoint.files import save
from vitrail.model.contract import Model
from vitrail.model.cost import cost
from vitrail.model.patches import Size
from vitrail.runtime.auto import CANDIDATES, fitting
from vitrail.runtime.choice import EngineChoice, EngineName, Precision, install_command, missing_packages
from vitrail.runtime.exported import ENGINES as RUNNERS
from vitrail.runtime.exported import is_exported
from vitrail.runtime.timing import Timing, gemm_peak
from vitrail.verbs.agreement import compare, sample_pixels
from vitrail.verbs.computing import computing
from vitrail.verbs.engine_table import EngineSpeed, EngineTable
from vitrail.verbs.engine_trial import Trial, run_trial
from vitrail.verbs.network import FileSettings, open_network

MOST_SECONDS = 3600
"""For which passes of one batch are repeated."""


def engines(
    model: str | os.PathLike[str] | Model,
    *,
    batch: Sequence[int] = (1, 8, 32),
    engine: Sequence[EngineName] = (),
    image_size: int | Size | None = None,
    num_heads: int | None = None,
    architecture: str | None = None,
    pickle: bool = False,
    calibrate: str | os.PathLike[str] | None = None,
    merge_tokens: int = 0,
    threads: int | None = None,
    seconds: float = 2.0,
    progress: Progress = silent,
    note: Note = logged,
) -> EngineTable:
    """Measure the engines on this machine with a model: speed, memory, start-up, and whether they agree with torch.

        >>> model = vitrail.create("Ti/16", num_classes=2, image_size=32, depth=1, seed=0)
        >>> table = vitrail.engines(model, batch=[2], engine=["torch"], seconds=0.01)
        >>> [(speed.engine, speed.batch, speed.agreement) for speed in table.speeds if speed.precision == "float32"]
        [('torch', 2, 1.0)]

    `model` is a file that `vitrail.predict` takes, or a model in memory. Each engine runs in a process of its own, for
    every number of images in `batch`, for about `seconds` each; `engine` names some, by default all that are
    installed. int8 of other engines than native is measured where images to `calibrate` with are given; engines are
    then compared on others of these, not on the embedded sample. With `merge_tokens` every engine but native merges
    that many tokens in each block, and is compared with torch that merges none. Times taken while other programs run
    are not worth much.
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
            own: Precision = getattr(network.engine, "precision", "float32")
            choices = candidates(path, own, calibrate=calibrate, merge_tokens=merge_tokens)
            macs = math.nan if network.config is None else cost(network.config).macs
            pixels = sample_pixels(network.engine.preprocessing, calibrate or "sample")
            np.save(Path(folder) / "pixels.npy", pixels.numpy())
            used = torch.get_num_threads()
        with computing(threads, "cpu", note):
            peak = gemm_peak()
        trial = Trial(
            model=os.fspath(path),
            choice=choices[0],
            batches=tuple(batch),
            threads=threads,
            seconds=seconds,
            pixels=str(Path(folder) / "pixels.npy"),
            answers="",
            overrides=file.overrides,
            pickle=file.pickle,
        )
        speeds, failed = _measure_all(trial, choices, tuple(engine), Path(folder), progress)
    if calibrate is None and not is_exported(path):
        failed.append("int8 was measured in native alone; the others need images to `calibrate` with.")
    return EngineTable(
        model=name,
        threads=used,
        speeds=tuple(speeds),
        peak=peak,
        limit=peak / macs,
        reference=f"{choices[0].engine} in {choices[0].precision}",
        images=f"{len(pixels)} images of {'the embedded sample' if calibrate is None else os.fspath(calibrate)}",
        failed=tuple(failed),
    )


def _measure_all(
    trial: Trial, choices: list[EngineChoice], chosen: tuple[EngineName, ...], folder: Path, progress: Progress
) -> tuple[list[EngineSpeed], list[str]]:
    """Run a trial of each engine; the first is the one with which the others are compared."""
    speeds: list[EngineSpeed] = []
    failed: list[str] = []
    reference = choices[0]
    used = [choice for choice in choices if not chosen or choice.engine in chosen or choice == reference]
    for place, choice in enumerate(progress(used, total=len(used), title="measuring engines")):
        name = str(choice.engine)
        if missing_packages(name):
            failed.append(f"{name} is not installed; to measure it, run `{install_command(name)}`.")
            continue
        result = run_trial(replace(trial, choice=choice, answers=str(folder / f"answers-{place}.npy")))
        if "error" in result:
            failed.append(f"{name} in {choice.precision}: {result['error']}")
            continue
        agreement, difference = compare(np.load(folder / f"answers-{place}.npy"), np.load(folder / "answers-0.npy"))
        for row in result["timings"] if not chosen or choice.engine in chosen else ():
            timing = Timing(batch=row["batch"], seconds=tuple(row["seconds"]))
            speeds.append(
                EngineSpeed(
                    engine=choice.engine or "torch",
                    precision=choice.precision or "float32",
                    merge_tokens=choice.merge_tokens,
                    batch=timing.batch,
                    images_per_second=timing.images_per_second,
                    median=timing.median,
                    slow=timing.slow,
                    memory=row["memory"],
                    start_up=result["start_up"],
                    agreement=agreement,
                    difference=difference,
                )
            )
    return speeds, failed


def candidates(
    path: Path,
    precision: Precision,
    *,
    calibrate: str | os.PathLike[str] | None = None,
    merge_tokens: int = 0,
) -> list[EngineChoice]:
    """Return the engines and precisions that a file can have on this processor, the one of reference first."""
    if is_exported(path):
        for name, value in (("calibrate", calibrate), ("merge_tokens", merge_tokens)):
            if value:
                raise ConfigError(f"{path} is a graph that was exported with its settings; leave out `{name}`.")
        return [EngineChoice(engine=name, precision=precision) for name in RUNNERS[path.suffix.lower()]]
    plain = EngineChoice(precision="float32", merge_tokens=merge_tokens)
    wanted = [plain]
    if has_bfloat16():
        wanted.append(replace(plain, precision="bfloat16"))
    wanted.append(replace(plain, precision="int8", calibrate=None if calibrate is None else os.fspath(calibrate)))
    fitted = [fitting(choice, name) for choice in wanted for name in CANDIDATES]
    choices = [choice for choice in fitted if choice is not None]
    reference = EngineChoice(engine="torch", precision="float32")
    return choices if choices[0] == reference else [reference, *choices]
