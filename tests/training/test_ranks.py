"""Two ranks on one CPU: the same run as one rank, sharded or not, and across a change of their number."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.training.following import following_run
from tests.training.making import HELD, StopAfter, made_loop, made_run, weights
from tests.training.ranks_program import config_of, following_of
from vitrail.base.container import open_container
from vitrail.base.lines import read_rows
from vitrail.training.endings import StoppedError
from vitrail.training.loop import Loop

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def one_rank(tmp_path_factory: pytest.TempPathFactory) -> tuple[Loop, Path]:
    folder = tmp_path_factory.mktemp("one")
    loop = made_loop(made_run(folder, config_of()))
    loop.run()
    return loop, folder


@pytest.fixture(scope="module")
def two_ranks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Everything that two ranks did, and the halves of runs that they took over."""
    folder = tmp_path_factory.mktemp("two")
    for name in ("one-then-two", "one-then-shards"):
        with pytest.raises(StoppedError):
            made_loop(made_run(folder / name, config_of()), stop=StopAfter(5)).run()
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    program = [str(ROOT / "tests" / "training" / "ranks_program.py"), str(folder)]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
    done = subprocess.run(command + program, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-4000:]
    return folder


def _stored(path: Path) -> dict[str, torch.Tensor]:
    container = open_container(path)
    return {name: container.tensor(name).clone() for name in container.places}


def _assert_close(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> None:
    """Compare all but the biases of keys: their gradient is 0 but for rounding, which Adam makes large."""
    assert one.keys() == other.keys()
    for name in one:
        ours, theirs = one[name], other[name]
        if "qkv.bias" in name and ours.ndim:
            ours, theirs = (torch.cat([bias.chunk(3)[0], bias.chunk(3)[2]]) for bias in (ours, theirs))
        torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=2e-5, msg=lambda text, name=name: f"{name}: {text}")


@pytest.mark.parametrize("kind", ["ddp", "fsdp"])
def test_two_ranks_have_the_loss_curve_of_one(one_rank: tuple[Loop, Path], two_ranks: Path, kind: str) -> None:
    alone, shared = read_rows(one_rank[1] / "metrics.jsonl"), read_rows(two_ranks / kind / "metrics.jsonl")
    assert [row.keys() for row in alone] == [row.keys() for row in shared]
    assert len([row for row in alone if "loss" in row]) >= 4
    for one, two in zip(alone, shared, strict=True):
        for name in ("loss", "val_loss"):
            if name in one:
                assert np.isclose(one[name], two[name], rtol=1e-5), (name, one["step"])


@pytest.fixture(scope="module")
def following(tmp_path_factory: pytest.TempPathFactory) -> tuple[Loop, Path]:
    folder = tmp_path_factory.mktemp("following")
    loop = made_loop(following_run(folder, following_of()))
    loop.run()
    return loop, folder


@pytest.mark.parametrize("kind", ["ddp", "fsdp"])
def test_a_learner_with_a_teacher_is_the_same_on_two_ranks(
    following: tuple[Loop, Path], two_ranks: Path, kind: str
) -> None:
    loop, folder = following
    alone, shared = (read_rows(path / "metrics.jsonl") for path in (folder, two_ranks / f"following-{kind}"))
    assert [row.keys() for row in alone] == [row.keys() for row in shared]
    assert len([row for row in alone if "loss" in row]) == 10
    for one, two in zip(alone, shared, strict=True):
        for name in {"loss", "length", "distance_mean", "often_mean"} & one.keys():
            assert np.isclose(one[name], two[name], rtol=1e-5), (name, one["step"])
    state = _stored(two_ranks / f"following-{kind}.safetensors")
    assert {"scale", "centre", "seen"} <= {name.split(".", 1)[1] for name in state if name.count(".") == 1}
    _assert_close(state, weights(loop))


def test_shards_end_where_copies_end(two_ranks: Path) -> None:
    _assert_close(_stored(two_ranks / "fsdp.safetensors"), _stored(two_ranks / "ddp.safetensors"))


@pytest.mark.parametrize("name", ["one-then-two", "one-then-shards"])
def test_two_ranks_go_on_where_one_was_stopped(one_rank: tuple[Loop, Path], two_ranks: Path, name: str) -> None:
    _assert_close(_stored(two_ranks / f"{name}.safetensors"), weights(one_rank[0]))


def test_one_rank_goes_on_where_two_were_stopped(one_rank: tuple[Loop, Path], two_ranks: Path) -> None:
    loop = made_loop(made_run(two_ranks / "two-then-one", config_of()), resume=True)
    assert loop.state.progress.step == 5
    loop.run()
    _assert_close(weights(loop), weights(one_rank[0]))


@pytest.mark.parametrize("kind", ["ddp", "fsdp"])
def test_every_held_out_image_is_counted_once_by_two_ranks(two_ranks: Path, kind: str) -> None:
    run = made_run(two_ranks / kind, config_of())
    loop = made_loop(run, resume=True)
    (held_out,) = run.evaluators()
    with loop.state.saved_weights():
        answers = loop.outcome(held_out)
    assert answers.answered.sum() == HELD
    assert answers.accuracy == json.loads((two_ranks / f"{kind}.json").read_text())["accuracy"]


def test_only_the_first_rank_writes(two_ranks: Path) -> None:
    rows = read_rows(two_ranks / "ddp" / "metrics.jsonl")
    steps = [row["step"] for row in rows if "loss" in row]
    assert steps == sorted(set(steps))
