"""What `test_ranks.py` starts under torchrun: every objective on two ranks, with copies and with shards."""

import sys
from pathlib import Path

import torch

from tests.selfsup.making import unlabelled_config, unlabelled_run
from tests.selfsup.test_runs import OBJECTIVES
from tests.training.making import made_loop
from tests.training.ranks_program import keep
from vitrail.base.ranks import join
from vitrail.runs.config import RunConfig
from vitrail.runs.execution import Execution

torch.set_num_threads(1)


def config_of(name: str, *, shard: bool = False) -> RunConfig:
    execution = Execution(checkpoint_every=100, shard=shard, device="cpu")
    return unlabelled_config(OBJECTIVES[name], execution=execution)


def main(folder: Path) -> None:
    """Run every objective both ways."""
    with join(torch.device("cpu")) as ranks:
        for name in OBJECTIVES:
            for way, shard in (("ddp", False), ("fsdp", True)):
                run = unlabelled_run(folder / f"{name}-{way}", config_of(name, shard=shard), ranks=ranks)
                loop = made_loop(run)
                loop.run()
                keep(loop, folder / f"{name}-{way}.safetensors", ranks)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
