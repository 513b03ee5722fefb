"""Freed memory stays in the process; a need that exceeds the machine's memory is refused."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from vitrail import InputError
from vitrail.base import memory
from vitrail.base.memory import check_memory, give_back, machine_memory

PAGES = """
import resource
import numpy as np
from vitrail.base.memory import keep_freed_memory
keep_freed_memory()
def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    np.ones(40 * 2**20, dtype=np.uint8)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
faults()
print(faults())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="glibc")
def test_a_process_that_keeps_memory_asks_for_no_new_pages() -> None:
    done = subprocess.run([sys.executable, "-c", PAGES], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 100  # 40 MiB are 10240 pages


@pytest.mark.skipif(sys.platform != "linux", reason="/proc/meminfo")
def test_more_than_the_machine_has_is_refused_in_a_sentence(monkeypatch, tmp_path) -> None:
    line = Path("/proc/meminfo").read_text().splitlines()[0]
    physical = int(line.removeprefix("MemTotal:").removesuffix("kB")) * 1024
    assert machine_memory() <= physical
    monkeypatch.setattr(memory, "_CONTAINER", tmp_path / "memory.max")
    assert machine_memory() == physical
    (tmp_path / "memory.max").write_text("max\n")
    assert machine_memory() == physical
    (tmp_path / "memory.max").write_text(f"{2**20}\n")
    check_memory(2**20, "the model")
    with pytest.raises(InputError, match=r"the model needs 74\.00 GiB of memory, but this machine has 1\.00 MiB\."):
        check_memory(74 * 2**30, "the model")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux gives pages back")
def test_whole_pages_are_given_back_and_their_neighbours_stay() -> None:
    page = os.sysconf("SC_PAGE_SIZE")
    numbers = np.ones(8 * page, dtype=np.uint8)
    first = -numbers.ctypes.data % page  # where the first whole page begins
    give_back(numbers.ctypes.data + first + 1, 3 * page)
    assert numbers[: first + page].all()
    assert not numbers[first + page : first + 3 * page].any()
    assert numbers[first + 3 * page :].all()
    give_back(numbers.ctypes.data, page // 2)  # no whole page
    assert numbers.sum() == 6 * page
