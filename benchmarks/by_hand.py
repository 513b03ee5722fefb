"""Measure what is written by hand beside what a library offers: tar headers, CSV columns, MATLAB, EXIF, Muon.

    python benchmarks/by_hand.py [--output benchmarks/results/by_hand.json]

Each pair runs in rounds on one thread (`contest.py`); seconds are those of computing, the median of five rounds. Memory
is the growth of the peak of resident memory in a fresh process. docs/decisions/0008-written-by-hand.md concludes.
"""

import argparse
import io
import json
import os
import platform
import random
import resource
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from contest import paired, race
from PIL import Image

ROUNDS = 5
TAR_MEMBERS = 50_000
CSV_LINES = 1_000_000
WORDNET_ROWS = 1_860  # of ImageNet's meta.mat
PHOTOS = 2_000
ORIENTATION = 0x0112


def compared(ways: dict[str, Callable[[], Any]], rounds: int = ROUNDS) -> dict[str, dict[str, Any]]:
    """Seconds of computing of each way, the median of several rounds, and how many times as fast ours was."""
    seconds = race(ways, rounds, clock=time.process_time)
    first, *others = seconds
    return {
        "seconds": {name: statistics.median(own) for name, own in seconds.items()},
        "ours to it": {name: str(paired(seconds[first], seconds[name])) for name in others},
    }


def peaks(kind: str, names: list[str], path: Path) -> dict[str, float]:
    """MB that each way adds to the peak of a fresh process."""
    megabytes = {}
    for name in names:
        command = [sys.executable, __file__, "--one", kind, name, str(path)]
        megabytes[name] = float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return megabytes


# Tar headers


def make_tar(path: Path) -> None:
    with tarfile.open(path, "w") as file:
        for number in range(TAR_MEMBERS):
            member = tarfile.TarInfo(f"n{number % 1000:08d}/{number:08d}.jpg")
            member.size = 100
            file.addfile(member, io.BytesIO(bytes(100)))


def tar_ours(path: Path) -> int:
    from vitrail.data.sources.tar import members

    handle = os.open(path, os.O_RDONLY)
    try:
        return sum(member.size for member in members(handle))
    finally:
        os.close(handle)


def tar_stdlib(path: Path) -> int:
    with tarfile.open(path, "r:") as file:
        return sum(member.size for member in file)


def tar_damage(folder: Path) -> dict[str, str]:
    """What each says of a shard that lacks its second half, and of a name that claims 1 GB."""
    whole, cut, huge = folder / "whole.tar", folder / "cut.tar", folder / "huge.tar"
    with tarfile.open(whole, "w") as file:
        for number in range(4):
            member = tarfile.TarInfo(f"{number}.jpg")
            member.size = 5000
            file.addfile(member, io.BytesIO(bytes(5000)))
    cut.write_bytes(whole.read_bytes()[:8000])
    header = tarfile.TarInfo("x")
    header.type, header.size = tarfile.GNUTYPE_LONGNAME, 1 << 30
    with huge.open("wb") as raw:
        raw.write(header.tobuf())
        raw.truncate(1 << 30)
    answers = {}
    for name, way in (("ours", tar_ours), ("tarfile", tar_stdlib)):
        for path in (cut, huge):
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            try:
                answer = f"{way(path)} bytes of members, no error"
            except Exception as error:
                answer = f"{type(error).__name__}: {error}"
            grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
            answers[f"{name}, {path.stem}"] = f"{answer} (+{grown:.0f} MB)"
    return answers


# CSV columns


def make_csv(path: Path) -> None:
    with path.open("w") as file:
        file.write("path,label,split\n")
        for number in range(CSV_LINES):
            name = f"n{(number * 2654435761) % 1000 + 1_000_000:08d}"
            file.write(f"train/{name}/{name}_{number:08d}.JPEG,{name},train\n")


def csv_ours(path: Path) -> int:
    from vitrail.data.sources.columns import read_plain

    columns = read_plain(path, lambda _, __: {"path": 0, "label": 1, "split": 2}, ())
    assert columns is not None
    return len(columns.paths)


def csv_stdlib(path: Path) -> int:
    """Read with Python's csv and make the same checks, as the reader of files that are not plain does."""
    from vitrail.data.sources.manifest import _csv_rows, _read_rows

    return len(_read_rows(path, path.parent, _csv_rows(path)).paths)


def csv_pyarrow(path: Path) -> int:
    import pyarrow as pa
    import pyarrow.csv

    text = pa.dictionary(pa.int32(), pa.string())
    options = pyarrow.csv.ConvertOptions(column_types={"path": pa.string(), "label": text, "split": text})
    read = pyarrow.csv.ReadOptions(use_threads=False)
    table = pyarrow.csv.read_csv(path, convert_options=options, read_options=read)
    return len(table.column("path").combine_chunks())


# MATLAB


def make_matlab(path: Path) -> None:
    from scipy.io import savemat

    kinds = [("ILSVRC2012_ID", "O"), ("WNID", "O"), ("words", "O"), ("num_train_images", "O")]
    rows = np.zeros((WORDNET_ROWS, 1), dtype=kinds)
    for row in range(WORDNET_ROWS):
        rows[row, 0] = (row + 1, f"n{row:08d}", f"thing {row}, another word", 1300)
    savemat(path, {"synsets": rows}, do_compression=True)


def matlab_ours(path: Path) -> int:
    from vitrail.data.sources.matlab import read_matlab

    return len(read_matlab(path)["synsets"]["WNID"])


def matlab_scipy(path: Path) -> int:
    from scipy.io import loadmat

    return len(loadmat(path, squeeze_me=True)["synsets"]["WNID"])


# EXIF


def make_exif() -> bytes:
    """EXIF of a camera: 20 tags, a maker's note of 8 kB."""
    exif = Image.Exif()
    for tag in range(0x010E, 0x0118):
        exif[tag] = 6 if tag == ORIENTATION else 1
    exif[0x010F], exif[0x0110], exif[0x0131] = "A maker", "A camera", "A program 1.2"
    exif.get_ifd(0x8769).update({0x829A: (1, 250), 0x9003: "2020:01:01 00:00:00", 0x927C: bytes(8000)})
    return exif.tobytes()


def make_photo(exif: bytes) -> bytes:
    file = io.BytesIO()
    Image.effect_noise((500, 375), 60).convert("RGB").save(file, "JPEG", exif=exif)
    return file.getvalue()


def exif_ways(photo: bytes, exif: bytes) -> dict[str, Callable[[], Any]]:
    from vitrail.data.pixels.decode import decode
    from vitrail.data.pixels.orientation import orientation_of

    opened = [Image.open(io.BytesIO(photo)) for _ in range(PHOTOS)]

    def ours() -> None:
        for image in opened:
            orientation_of(image.info)

    def pillow() -> None:
        for image in opened:
            image._exif = None  # type: ignore[attr-defined]  # it keeps what it has read
            image.getexif().get(ORIENTATION, 1)

    def segment() -> None:
        for _ in range(PHOTOS):
            orientation_of({"exif": exif})

    def pillow_segment() -> None:
        for _ in range(PHOTOS):
            exif_data = Image.Exif()
            exif_data.load(exif)
            exif_data.get(ORIENTATION, 1)

    return {
        "ours": ours,
        "Pillow's getexif": pillow,
        "ours, bytes alone": segment,
        "Pillow's Exif, bytes alone": pillow_segment,
        "decoding the photo": lambda: [decode(photo) for _ in range(PHOTOS // 20)],
    }


def exif_fuzz(exif: bytes) -> dict[str, int]:
    """How many of 5,000 damaged EXIF blocks raise an error or a warning, and how often the answers differ."""
    import warnings

    from vitrail.data.pixels.orientation import orientation_of

    rand, counts = random.Random(0), {"raised": 0, "warned": 0, "no number from 1 to 8": 0, "differs": 0}  # noqa: S311
    for _ in range(5_000):
        damaged = bytearray(exif)
        for _ in range(rand.randrange(1, 6)):
            damaged[rand.randrange(6, 200)] = rand.randrange(256)
        ours = orientation_of({"exif": bytes(damaged)})
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            try:
                exif_data = Image.Exif()
                exif_data.load(bytes(damaged))
                theirs = exif_data.get(ORIENTATION, 1)
            except Exception:
                counts["raised"] += 1
                continue
        counts["warned"] += bool(warned)
        counts["no number from 1 to 8"] += theirs not in range(1, 9)
        counts["differs"] += theirs in range(1, 9) and theirs != ours
    return counts


# Muon


def muon_ways(dim: int, depth: int) -> dict[str, Callable[[], Any]]:
    from vitrail.training.muon import Muon

    def kernels() -> list[torch.nn.Parameter]:
        shapes = [(3 * dim, dim), (dim, dim), (4 * dim, dim), (dim, 4 * dim)] * depth
        torch.manual_seed(0)
        return [torch.nn.Parameter(torch.randn(shape) / 50) for shape in shapes]

    mine, theirs = kernels(), kernels()
    ours = Muon([{"params": mine, "stacked": 1, "momentum": 0.95}], lr=1e-3, weight_decay=0.1)
    other = torch.optim.Muon(theirs, lr=1e-3, weight_decay=0.1, momentum=0.95)
    gradients = [torch.randn_like(kernel) for kernel in mine]

    def step(optimizer: torch.optim.Optimizer, weights: list[torch.nn.Parameter]) -> Callable[[], None]:
        def move() -> None:
            for weight, gradient in zip(weights, gradients, strict=True):
                weight.grad = gradient
            optimizer.step()

        return move

    return {"ours": step(ours, mine), "torch.optim.Muon": step(other, theirs)}


ONE = {
    "tar": {"ours": tar_ours, "tarfile": tar_stdlib},
    "csv": {"ours": csv_ours, "csv": csv_stdlib, "pyarrow.csv": csv_pyarrow},
    "matlab": {"ours": matlab_ours, "scipy": matlab_scipy},
}


def one(kind: str, name: str, path: Path) -> float:
    """MB that one way adds to the peak of this process, imports included."""
    import vitrail.data.catalog  # noqa: F401

    before = _status("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the peak counts from here
    ONE[kind][name](path)
    return _status("VmHWM") - before


def _status(key: str) -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(key)) / 1024


def measure(folder: Path) -> dict[str, Any]:
    results: dict[str, Any] = {}
    for kind, make in (("tar", make_tar), ("csv", make_csv), ("matlab", make_matlab)):
        path = folder / f"x.{kind}"
        make(path)
        ways = {name: (lambda way=way, path=path: way(path)) for name, way in ONE[kind].items()}
        results[kind] = compared(ways) | {"peak_mb": peaks(kind, list(ways), path)}
        print(kind, results[kind], flush=True)
    results["tar"]["damaged"] = tar_damage(folder)
    exif = make_exif()
    times = compared(exif_ways(make_photo(exif), exif))["seconds"]
    per_photo = {name: 1e6 * took / PHOTOS for name, took in times.items()}
    per_photo["decoding the photo"] *= 20
    results["exif"] = {"microseconds": per_photo, "damaged": exif_fuzz(exif)}
    print("exif", results["exif"], flush=True)
    for name, dim, depth in (("dim 128, depth 6", 128, 6), ("S, dim 384, depth 12", 384, 12)):
        results[f"muon, {name}"] = compared(muon_ways(dim, depth))
        print(name, results[f"muon, {name}"], flush=True)
    print(results["tar"]["damaged"])
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=None)
    parser.add_argument("--one", nargs=3, default=None, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    if arguments.one:
        kind, name, path = arguments.one
        print(one(kind, name, Path(path)))
        return
    with tempfile.TemporaryDirectory() as folder:
        results = measure(Path(folder))
    report = {
        "command": " ".join(["python", "benchmarks/by_hand.py", *sys.argv[1:]]),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "machine": f"{platform.machine()}, {platform.system()}",
        "results": results,
    }
    if arguments.output:
        arguments.output.write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
