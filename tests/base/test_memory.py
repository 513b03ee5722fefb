"""Freed memory stays in the process."""

import subprocess
import sys

import pytest

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
