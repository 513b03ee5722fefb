"""Two ranks have the run of one: keys, centre and the statistics of batches are those of all images.

Batch normalisation of 8 images makes rounding grow, hence tolerances of a thousandth; the statistics of half of the
images would differ by a tenth.
"""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.selfsup.view_ranks_program import STEPS
from tests.selfsup.views import OBJECTIVES, views_config, views_run
from tests.training.making import made_loop, weights
from vitrail.base.container import open_container
from vitrail.base.lines import read_rows

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
FIGURES = ("loss", "gradient_norm", "teacher_entropy", "mean_entropy", "feature_spread", "found", "distance_mean")


@pytest.fixture(scope="module")
def two_ranks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("two")
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    program = [str(ROOT / "tests" / "selfsup" / "view_ranks_program.py"), str(folder)]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
    done = subprocess.run(command + program, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-4000:]
    return folder


@pytest.mark.parametrize("ranks", ["ddp", "fsdp"])
@pytest.mark.parametrize("kind", OBJECTIVES)
def test_two_ranks_learn_what_one_learns(two_ranks: Path, tmp_path: Path, kind: str, ranks: str) -> None:
    loop = made_loop(views_run(tmp_path, views_config(kind, steps=STEPS)))
    loop.run()
    alone, shared = (read_rows(path / "metrics.jsonl") for path in (tmp_path, two_ranks / f"{kind}-{ranks}"))
    assert [row.keys() for row in alone] == [row.keys() for row in shared]
    assert len([row for row in alone if "loss" in row]) == STEPS
    for one, two in zip(alone, shared, strict=True):
        for name in set(FIGURES) & one.keys():
            assert np.isclose(one[name], two[name], rtol=1e-3, atol=1e-5), (name, one["step"])
    container = open_container(two_ranks / f"{kind}-{ranks}.safetensors")
    state = {name: container.tensor(name).clone() for name in container.places}
    expected = weights(loop)
    assert state.keys() == expected.keys()
    for name, tensor in state.items():
        apart = (tensor - expected[name]).abs().max()
        assert apart <= 2e-3 * expected[name].abs().max() + 1e-5, name
