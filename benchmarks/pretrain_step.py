"""A step of a masked autoencoder: images/s beside a supervised step of the same encoder, and transformers' ViTMAE.

    python benchmarks/pretrain_step.py [--model small|base] [--pool mean|class-token] [--threads 2] [--rounds 16]
    python benchmarks/pretrain_step.py --memory

All in one process, paired round by round (`contest.py`): float32, fused AdamW; from the pixels of a batch, through
normalisation, forward and backward pass, to moved weights; ours in the shares that a run has. `small` is the encoder
and decoder of the rule at 64 px (dim 192, depth 6, patch 8; decoder 96x1), `base` is B/16 at 224 px with the published
decoder (512x8). The rule pools the mean over patches, and has no class token; transformers' encoder has one, so it is
compared with `--pool class-token`. There the supervised step computes only that token in the last block, which makes it
faster and MAE's gain smaller.
`--memory` measures the peak of each in a process of its own.
"""

import argparse
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from contest import machine, paired, race
from transformers import ViTMAEConfig, ViTMAEForPreTraining

import vitrail
from vitrail.base.memory import keep_freed_memory
from vitrail.data.batch import Batch, class_targets
from vitrail.data.preprocessing import Preprocessing
from vitrail.data.transforms import normalise
from vitrail.runs.choose_pretraining import MAE_WIDTH, small_mae
from vitrail.selfsup.mae import DecoderConfig, MAEConfig
from vitrail.training.classification import ClassificationConfig
from vitrail.training.learner import Learner, Task, make_learner
from vitrail.training.shares import in_shares, shares

OURS, SUPERVISED, PEER = "vitrail MAE", "vitrail supervised", "transformers MAE"


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """An encoder and a decoder."""

    side: int
    patch: int
    encoder: dict[str, int]
    decoder: DecoderConfig

    @property
    def preprocessing(self) -> Preprocessing:
        return Preprocessing(image_size=(self.side, self.side))


MODELS = {
    "small": Sizes(
        side=64,
        patch=8,
        encoder={"dim": MAE_WIDTH, "depth": 6, "num_heads": MAE_WIDTH // 32, "mlp_dim": 2 * MAE_WIDTH},
        decoder=small_mae(MAE_WIDTH).decoder,
    ),
    "base": Sizes(
        side=224,
        patch=16,
        encoder={"dim": 768, "depth": 12, "num_heads": 12, "mlp_dim": 3072},
        decoder=DecoderConfig(),
    ),
}


def encoder(sizes: Sizes, pool: str, classes: int) -> vitrail.ViT:
    config = vitrail.ViTConfig(
        **sizes.encoder,
        patch_size=(sizes.patch, sizes.patch),
        image_size=(sizes.side, sizes.side),
        num_classes=classes,
        pool=pool,
        positions="sincos-2d",
        gelu="erf",
    )
    return vitrail.build(config, seed=0)


def batch_of(sizes: Sizes, images: int) -> Batch:
    pixels = np.random.default_rng(0).integers(0, 256, (images, 3, sizes.side, sizes.side), dtype=np.uint8)
    numbers, targets = torch.arange(images), class_targets(torch.arange(images) % 100)
    return Batch(views=(torch.from_numpy(pixels),), targets=targets, indices=numbers, positions=numbers)


def update(module: torch.nn.Module, backward: Callable[[], object]) -> Callable[[], None]:
    optimizer = torch.optim.AdamW(
        [weight for weight in module.parameters() if weight.requires_grad], lr=1e-4, fused=True
    )

    def step() -> None:
        optimizer.zero_grad()
        backward()
        optimizer.step()

    return step


def vitrail_mae(sizes: Sizes, pool: str, images: int) -> Callable[[], None]:
    task = Task(preprocessing=sizes.preprocessing, images=images)
    learner = make_learner(MAEConfig(decoder=sizes.decoder), encoder(sizes, pool, 0), task, seed=0)
    return update(learner, as_in_a_run(learner, batch_of(sizes, images)))


def as_in_a_run(learner: Learner, batch: Batch) -> Callable[[], object]:
    """Return the passes of a step as `training.step` has them: few threads take a share of the images each."""
    count = shares(torch.get_num_threads(), len(batch))
    return lambda: in_shares(learner, batch.divide(count), 1.0) if count > 1 else learner(batch)[0].backward()


def vitrail_supervised(sizes: Sizes, pool: str, images: int) -> Callable[[], None]:
    task = Task(preprocessing=sizes.preprocessing, counts=(1,) * 100)
    learner = make_learner(ClassificationConfig(), encoder(sizes, pool, 100), task, seed=0)
    return update(learner, as_in_a_run(learner, batch_of(sizes, images)))


def transformers_mae(sizes: Sizes, pool: str, images: int) -> Callable[[], None]:  # noqa: ARG001 - it has a class token
    config = ViTMAEConfig(
        hidden_size=sizes.encoder["dim"],
        num_hidden_layers=sizes.encoder["depth"],
        num_attention_heads=sizes.encoder["num_heads"],
        intermediate_size=sizes.encoder["mlp_dim"],
        image_size=sizes.side,
        patch_size=sizes.patch,
        decoder_hidden_size=sizes.decoder.dim,
        decoder_num_hidden_layers=sizes.decoder.depth,
        decoder_num_attention_heads=sizes.decoder.num_heads,
        decoder_intermediate_size=sizes.decoder.mlp_dim,
        norm_pix_loss=True,
    )
    model, batch = ViTMAEForPreTraining(config).train(), batch_of(sizes, images)
    return update(model, lambda: model(normalise(batch.images, sizes.preprocessing)).loss.backward())


MAKERS = {OURS: vitrail_mae, SUPERVISED: vitrail_supervised, PEER: transformers_mae}


def peak_memory(maker: str, args: argparse.Namespace) -> float:
    """Return MiB that training adds to a process that has everything imported."""
    code = (
        f"import resource, torch, pretrain_step as p; torch.set_num_threads({args.threads});"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss;"
        f"step = p.MAKERS[{maker!r}](p.MODELS[{args.model!r}], {args.pool!r}, {args.batch});"
        "[step() for _ in range(3)];"
        "print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)"
    )
    environment = os.environ | {"MALLOC_MMAP_THRESHOLD_": "65536"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    return float(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=MODELS, default="small")
    parser.add_argument("--pool", choices=("mean", "class-token"), default="mean")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=16)
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--only", nargs="+", choices=MAKERS, default=list(MAKERS))
    args = parser.parse_args()
    if args.memory:
        for maker in args.only:
            print(f"{maker:20}{peak_memory(maker, args):8.0f} MiB", flush=True)
        return
    torch.set_num_threads(args.threads)
    keep_freed_memory()
    sizes = MODELS[args.model]
    seconds = race({maker: MAKERS[maker](sizes, args.pool, args.batch) for maker in args.only}, args.rounds)
    print({"model": args.model, "pool": args.pool, "batch": args.batch, "rounds": args.rounds} | machine())
    for maker, theirs in seconds.items():
        speed = args.batch / sorted(theirs)[len(theirs) // 2]
        print(f"{maker:20}{speed:8.1f} images/s   vitrail MAE is {paired(seconds[OURS], theirs)} as fast")


if __name__ == "__main__":
    main()
