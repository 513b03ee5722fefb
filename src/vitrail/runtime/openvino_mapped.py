"""A graph for OpenVINO whose weights stay in a file, and leave memory as soon as they are packed.

OpenVINO packs weights for its products and keeps those that it has read beside them: twice the memory. Weights that
are mapped from a file need not stay. They are let go while the model is compiled, and the system reads again what is
needed again. A file that somebody overwrites meanwhile would change answers or end the process, so it is a copy
without a name.
"""

import os
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import mkdtemp
from threading import Event, Thread

from vitrail.base.files import cache_folder
from vitrail.base.memory import give_back
from vitrail.runtime.onnx_mapped import without_weights

LEAST = 2**24
"""Bytes of the smallest file that is worth a copy."""
PAUSE = 0.01
"""Seconds between two times of letting go: a core packs some ten megabytes in them."""
FOLDER = "openvino"
"""Of the user's cache, where copies are made."""
OLD = 3600.0
"""Seconds after which a copy is one that a kill left behind: it has a name for about a second."""
_MAPPINGS = Path("/proc/self/maps")

Region = tuple[int, int]
"""Address and size of a part of memory."""


@contextmanager
def own_copy(path: Path) -> Iterator[Path | None]:
    """Yield the path of a copy to read with its weights mapped; None for a small file, or where none can be written.

    Both files of OpenVINO's own format are copied; of ONNX, a graph that refers to the copy of its weights is written
    beside it. After the block the copy has no name any more: what is mapped stays until it is not needed.
    """
    files = [path] if _is_onnx(path) else [path, path.with_suffix(".bin")]
    folder = copy = None
    try:
        # Without room or a home the file is read into memory, and a damaged one is refused there.
        with suppress(OSError, RuntimeError, ValueError, IndexError):
            if sys.platform == "linux" and sum(file.stat().st_size for file in files) >= LEAST:
                folder = _new_folder()
                copy = _copied(files, folder)
        yield copy
    finally:
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)


def _is_onnx(path: Path) -> bool:
    return path.suffix.lower() == ".onnx"


def _new_folder() -> Path:
    copies = cache_folder().resolve() / FOLDER  # resolved, as the system lists what is mapped
    copies.mkdir(parents=True, exist_ok=True)
    _remove_old(copies)
    return Path(mkdtemp(dir=copies))


def _remove_old(copies: Path) -> None:
    """Remove copies that a kill left behind."""
    for folder in copies.iterdir():
        with suppress(FileNotFoundError):  # another process has removed it
            if time.time() - folder.stat().st_mtime > OLD:
                shutil.rmtree(folder, ignore_errors=True)


def _copied(files: list[Path], folder: Path) -> Path:
    """Copy files into a folder, and return the one to read."""
    copies = [Path(shutil.copyfile(file, folder / f"model{file.suffix.lower()}")) for file in files]
    if not _is_onnx(copies[0]):
        return copies[0]
    graph = folder / "graph.onnx"
    graph.write_bytes(without_weights(copies[0]))
    return graph


def mapped_regions(folder: Path) -> list[Region]:
    """Return where in memory the files of a folder are mapped; nowhere, if the system does not list it."""
    regions, name = [], os.fsencode(f" {folder}/")
    with suppress(OSError):
        for line in _MAPPINGS.read_bytes().splitlines():
            if name in line:
                start, _, end = line.split()[0].partition(b"-")
                regions.append((int(start, 16), int(end, 16) - int(start, 16)))
    return regions


@contextmanager
def let_go(regions: list[Region]) -> Iterator[None]:
    """Keep returning the pages of mapped files to the system during the block, and once at its end.

    The files must stay mapped that long; whoever reads such a page again gets it from the file.
    """
    end = Event()

    def work() -> None:
        while not end.wait(PAUSE):
            _give_back(regions)

    helper = Thread(target=work, name="vitrail-let-go", daemon=True)
    helper.start()
    try:
        yield
    finally:
        end.set()
        helper.join()
        _give_back(regions)


def _give_back(regions: list[Region]) -> None:
    for address, size in regions:
        give_back(address, size)
