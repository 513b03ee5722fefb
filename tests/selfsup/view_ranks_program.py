"""What `test_view_ranks.py` starts under torchrun: DINO and MoCo v3 on two ranks, in copies and in shards."""

import sys
from pathlib import Path

import torch

from tests.selfsup.views import OBJECTIVES, views_config, views_run
from tests.training.making import made_loop
from tests.training.ranks_program import keep
from vitrail.base.ranks import join

torch.set_num_threads(1)
STEPS = 4
"""Before rounding has grown: batch normalisation of 8 images makes it grow with every step."""


def main(folder: Path) -> None:
    """Run everything that the tests look at."""
    with join(torch.device("cpu")) as ranks:
        for kind in OBJECTIVES:
            for name, shard in (("ddp", False), ("fsdp", True)):
                place = f"{kind}-{name}"
                loop = made_loop(views_run(folder / place, views_config(kind, shard=shard, steps=STEPS), ranks=ranks))
                loop.run()
                keep(loop, folder / f"{place}.safetensors", ranks)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
