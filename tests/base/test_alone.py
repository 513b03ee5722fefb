import os
import subprocess
import sys

import pytest
import torch

from vitrail.base.alone import each_alone, may_share

FORK = """
import os
import torch
from vitrail.base.alone import each_alone

each_alone(2, [lambda: 1])
child = os.fork()
if child == 0:
    os._exit(each_alone(2, [lambda: 7])[0])
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_tasks_run_on_one_core_each_and_their_results_are_in_order() -> None:
    before = torch.get_num_threads()
    assert each_alone(3, [lambda number=number: (number, torch.get_num_threads()) for number in range(7)]) == [
        (number, 1) for number in range(7)
    ]
    assert torch.get_num_threads() == before


def test_two_to_four_threads_share() -> None:
    assert [threads for threads in range(1, 65) if may_share(threads)] == [2, 3, 4]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_process_starts_threads_of_its_own() -> None:
    done = subprocess.run([sys.executable, "-c", FORK], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.split() == ["7"]
