"""Every objective on two ranks, with copies and with shards, ends where one rank ends."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.selfsup.making import unlabelled_run
from tests.selfsup.ranks_program import config_of
from tests.selfsup.test_runs import OBJECTIVES
from tests.training.making import made_loop, weights
from tests.training.test_ranks import _assert_close, _stored
from vitrail.base.lines import read_rows

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def two_ranks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("two")
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    program = [str(ROOT / "tests" / "selfsup" / "ranks_program.py"), str(folder)]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
    done = subprocess.run(command + program, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-4000:]
    return folder


@pytest.mark.parametrize("name", OBJECTIVES)
def test_two_ranks_end_with_the_state_of_one(name: str, two_ranks: Path, tmp_path: Path) -> None:
    loop = made_loop(unlabelled_run(tmp_path, config_of(name)))
    loop.run()
    alone = read_rows(tmp_path / "metrics.jsonl")
    for way in ("ddp", "fsdp"):
        _assert_close(weights(loop), _stored(two_ranks / f"{name}-{way}.safetensors"))
        shared = read_rows(two_ranks / f"{name}-{way}" / "metrics.jsonl")
        assert [row.keys() for row in alone] == [row.keys() for row in shared]
        for one, two in zip(alone, shared, strict=True):
            for figure in ("loss", "val_loss", "probe_spread"):
                if figure in one:
                    assert np.isclose(one[figure], two[figure], rtol=1e-4), (figure, one["step"])
