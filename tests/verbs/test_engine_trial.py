"""The process that measures an engine."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

CHILD = """
import time
from vitrail.verbs.engine_trial import end_with_parent
end_with_parent()
print("measuring", flush=True)
time.sleep(120)
"""
PARENT = """
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", sys.argv[1]], stdout=subprocess.PIPE)
child.stdout.readline()
print(child.pid, flush=True)
child.wait()
"""


def test_it_ends_with_the_process_that_started_it() -> None:
    with subprocess.Popen([sys.executable, "-c", PARENT, CHILD], stdout=subprocess.PIPE) as parent:
        child = int(parent.stdout.readline())
        parent.send_signal(signal.SIGKILL)
    for _ in range(200):
        if not _lives(child):
            return
        time.sleep(0.1)
    os.kill(child, signal.SIGKILL)
    raise AssertionError("it outlives its parent")


def _lives(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
