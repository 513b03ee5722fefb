"""A step of a masked autoencoder: images/s beside a supervised step of the same encoder, and transformers' ViTMAE.

    python benchmarks/pretrain_step.py [--model small|base] [--threads 2] [--rounds 8] [--memory]

All in one process and interleaved, the best of each counts: float32, fused AdamW, forward, backward, update. `small` is
the encoder and decoder of the rule at 64 px (dim 128, depth 6; decoder 64x2), `base` is B/16 at 224 px with the
published decoder (512x8). The supervised step is Vitrail's own, of the same encoder on all patches. `--memory` measures
the peak of each in a process of its own.
"""

import argparse
import json
import os
import subprocess
import sys
import time

import numpy as np
import torch
import torch.nn.functional as F
from transformers import ViTMAEConfig, ViTMAEForPreTraining

import vitrail
from vitrail.data.batch import Batch, class_targets
from vitrail.data.preprocessing import Preprocessing
from vitrail.selfsup.mae import DecoderConfig, MAEConfig
from vitrail.training.learner import Task, make_learner

MODELS = {
    "small": (
        64,
        8,
        {"dim": 128, "depth": 6, "num_heads": 4, "mlp_dim": 256},
        DecoderConfig(dim=64, depth=2, num_heads=4, mlp_dim=128),
    ),
    "base": (224, 16, {"dim": 768, "depth": 12, "num_heads": 12, "mlp_dim": 3072}, DecoderConfig()),
}


def encoder(name: str, classes: int):
    side, patch, sizes, _ = MODELS[name]
    config = vitrail.ViTConfig(
        **sizes,
        patch_size=(patch, patch),
        image_size=(side, side),
        num_classes=classes,
        positions="sincos-2d",
        gelu="erf",
    )
    return vitrail.build(config, seed=0)


def batch_of(name: str, images: int) -> Batch:
    side = MODELS[name][0]
    pixels = np.random.default_rng(0).integers(0, 256, (images, 3, side, side), dtype=np.uint8)
    numbers, targets = torch.arange(images), class_targets(torch.zeros(images, dtype=torch.int64))
    return Batch(views=(torch.from_numpy(pixels),), targets=targets, indices=numbers, positions=numbers)


def update(module: torch.nn.Module, loss):
    optimizer = torch.optim.AdamW([w for w in module.parameters() if w.requires_grad], lr=1e-4, fused=True)

    def step() -> None:
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()

    return step


def vitrail_mae(name: str, images: int):
    side, _, _, decoder = MODELS[name]
    task = Task(preprocessing=Preprocessing(image_size=(side, side)), images=images)
    learner = make_learner(MAEConfig(decoder=decoder), encoder(name, 0), task, seed=0)
    batch = batch_of(name, images)
    return update(learner, lambda: learner(batch)[0])


def vitrail_supervised(name: str, images: int):
    model, batch = encoder(name, 100), batch_of(name, images)
    pixels = batch.images.float() / 127.5 - 1
    return update(model, lambda: F.cross_entropy(model(pixels), batch.classes))


def transformers_mae(name: str, images: int):
    side, patch, sizes, decoder = MODELS[name]
    config = ViTMAEConfig(
        hidden_size=sizes["dim"],
        num_hidden_layers=sizes["depth"],
        num_attention_heads=sizes["num_heads"],
        intermediate_size=sizes["mlp_dim"],
        image_size=side,
        patch_size=patch,
        decoder_hidden_size=decoder.dim,
        decoder_num_hidden_layers=decoder.depth,
        decoder_num_attention_heads=decoder.num_heads,
        decoder_intermediate_size=decoder.mlp_dim,
        norm_pix_loss=True,
    )
    model = ViTMAEForPreTraining(config).train()
    pixels = batch_of(name, images).images.float() / 127.5 - 1
    return update(model, lambda: model(pixels).loss)


MAKERS = {"vitrail MAE": vitrail_mae, "vitrail supervised": vitrail_supervised, "transformers MAE": transformers_mae}


def peak_memory(maker: str, name: str, images: int) -> float:
    """Return MiB that training adds to a process that has everything imported."""
    code = (
        "import resource, torch, pretrain_step as p; torch.set_num_threads(2);"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss;"
        f"step = p.MAKERS[{maker!r}]({name!r}, {images});"
        "[step() for _ in range(3)];"
        "print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)"
    )
    environment = os.environ | {"MALLOC_MMAP_THRESHOLD_": "65536"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    return float(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=MODELS, default="small")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--memory", action="store_true")
    args = parser.parse_args()
    if args.memory:
        for maker in MAKERS:
            print(f"{maker:20}{peak_memory(maker, args.model, args.batch):8.0f} MiB", flush=True)
        return
    torch.set_num_threads(args.threads)
    steps = {maker: make(args.model, args.batch) for maker, make in MAKERS.items()}
    for step in steps.values():
        step()
    best = dict.fromkeys(steps, float("inf"))
    for _ in range(args.rounds):
        for maker, step in steps.items():
            begun = time.perf_counter()
            step()
            best[maker] = min(best[maker], time.perf_counter() - begun)
    for maker, seconds in best.items():
        ratio = seconds / best["vitrail MAE"]
        print(f"{maker:20}{args.batch / seconds:8.1f} images/s   {ratio:5.2f} times the time of vitrail MAE")
    print(json.dumps({"model": args.model, "batch": args.batch, "seconds": best}))


if __name__ == "__main__":
    main()
