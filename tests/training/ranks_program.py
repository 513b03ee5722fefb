"""What `test_ranks.py` starts under torchrun: several small runs on two ranks, one after the other."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import torch

from tests.training.following import following_config, following_run
from tests.training.making import StopAfter, made_config, made_loop, made_run, plain, weights
from vitrail.base.container import write_container
from vitrail.base.ranks import Ranks, join
from vitrail.base.tensors import from_tensors
from vitrail.runs.config import RunConfig
from vitrail.runs.execution import Execution
from vitrail.training.endings import StoppedError
from vitrail.training.loop import Loop

torch.set_num_threads(1)


def config_of(*, shard: bool = False) -> RunConfig:
    """A run whose result does not depend on the number of ranks but for rounding.

    No checkpoint comes between an evaluation and the next step: gathering one would also reset what shards remember.
    """
    execution = Execution(checkpoint_every=100, shard=shard, device="cpu")
    return replace(plain(made_config()), execution=execution, log_every=1)


def following_of(*, shard: bool = False) -> RunConfig:
    """The same for a learner with a parameter, a buffer, a teacher and two views."""
    return following_config(execution=Execution(checkpoint_every=100, shard=shard, device="cpu"))


def keep(loop: Loop, path: Path, ranks: Ranks) -> None:
    """Write the whole state; gathering it is the work of all ranks."""
    tensors = weights(loop)
    if ranks.first:
        with path.open("wb") as file:
            write_container(file, from_tensors(tensors, "the run"), {}, digest=False)


def main(folder: Path) -> None:
    """Run everything that the tests look at."""
    with join(torch.device("cpu")) as ranks:
        for name, shard in (("ddp", False), ("fsdp", True)):
            run = made_run(folder / name, config_of(shard=shard), ranks=ranks)
            loop = made_loop(run)
            loop.run()
            keep(loop, folder / f"{name}.safetensors", ranks)
            held_out = run.evaluators()[0]
            loop.outcomes.clear()
            with loop.state.saved_weights():
                scores = held_out.figures(loop.outcome(held_out))
            if ranks.first:
                (folder / f"{name}.json").write_text(json.dumps(scores))
            loop = made_loop(following_run(folder / f"following-{name}", following_of(shard=shard), ranks=ranks))
            loop.run()
            keep(loop, folder / f"following-{name}.safetensors", ranks)
        stopped = made_run(folder / "two-then-one", config_of(), ranks=ranks)
        try:
            made_loop(stopped, stop=StopAfter(5, here=ranks.rank == 1)).run()
        except StoppedError:
            pass
        else:
            raise AssertionError("both ranks must stop when one is asked to")
        for name, shard in (("one-then-two", False), ("one-then-shards", True)):
            loop = made_loop(made_run(folder / name, config_of(shard=shard), ranks=ranks), resume=True)
            if loop.state.progress.step != 5:
                raise AssertionError(f"resumed at step {loop.state.progress.step}")
            loop.run()
            keep(loop, folder / f"{name}.safetensors", ranks)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
