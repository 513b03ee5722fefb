"""A training step of S/16 at 224 px, float32, AdamW: Vitrail beside its peers in one process.

    benchmarks/peers.sh /tmp/peers && /tmp/peers/bin/python benchmarks/train_step.py [--threads 2] [--memory]

Every model computes the same function (erf GELU, class token, 1000 classes) and does the same work: forward, softmax
cross-entropy, backward, AdamW. Vitrail's own default, the reference release's tanh GELU, runs as an extra row.
`--memory` measures peak memory instead, each model in a process of its own.
"""

import argparse
import os
import subprocess
import sys

import peers_shim  # noqa: F401  (must come before timm and torchvision)
import timm
import torch
import torch.nn.functional as F
import torchvision
import vit_pytorch
from contest import Contestant, contest, gemm_peak, save, show
from forward import HuggingFace
from transformers import ViTConfig

import vitrail

FLOPS = 6 * 4.60e9

SMALL = {"hidden_size": 384, "num_hidden_layers": 12, "num_attention_heads": 6, "intermediate_size": 1536}
MAKERS = {
    "vitrail": lambda: vitrail.create("S/16", gelu="erf", seed=0),
    "vitrail (tanh GELU)": lambda: vitrail.create("S/16", seed=0),
    "timm": lambda: timm.create_model("vit_small_patch16_224"),
    "Hugging Face": lambda: HuggingFace(ViTConfig(num_labels=1000, **SMALL)),
    "torchvision": lambda: torchvision.models.VisionTransformer(
        image_size=224, patch_size=16, num_layers=12, num_heads=6, hidden_dim=384, mlp_dim=1536
    ),
    "vit-pytorch": lambda: vit_pytorch.ViT(
        image_size=224, patch_size=16, num_classes=1000, dim=384, depth=12, heads=6, mlp_dim=1536
    ),
}


def step_of(model: torch.nn.Module, images: torch.Tensor, labels: torch.Tensor) -> Contestant:
    """Bind one step of training; AdamW is fused for everyone."""
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.05, fused=True)

    def step() -> None:
        optimizer.zero_grad()
        F.cross_entropy(model(images), labels).backward()
        optimizer.step()

    return step


def peak_memory(name: str, batch: int) -> float:
    """Return MiB that training adds to a process that has everything imported.

    Each tensor gets pages of its own, which go back when it is freed: what is resident is what is alive.
    """
    code = (
        "import resource, torch, train_step as t;"
        "torch.set_num_threads(2);"
        f"images, labels = torch.randn({batch}, 3, 224, 224), torch.zeros({batch}, dtype=torch.long);"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss;"
        f"step = t.step_of(t.MAKERS[{name!r}](), images, labels);"
        "[step() for _ in range(3)];"
        "print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)"
    )
    environment = os.environ | {"MALLOC_MMAP_THRESHOLD_": "65536"}
    command = [sys.executable, "-c", code]
    process = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return float(process.stdout)


def main() -> None:
    """Measure, print and save."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=8, help="times each contestant runs")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--memory", action="store_true", help="peak memory of a step instead of its time")
    args = parser.parse_args()
    if args.memory:
        for name in MAKERS:
            print(f"{name:24}{peak_memory(name, args.batch):10.0f} MiB", flush=True)
        return
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    peak = gemm_peak(dim=384, mlp_dim=1536, rows=args.batch * 197)
    print(f"GEMM peak: {peak / 1e9:.0f} GFLOP/s with {args.threads} threads")
    images, labels = torch.randn(args.batch, 3, 224, 224), torch.randint(0, 1000, (args.batch,))
    steps = {name: step_of(make(), images, labels) for name, make in MAKERS.items()}
    title = f"S/16, training step, batch {args.batch}"
    timings = contest(steps, ours="vitrail", images=args.batch, flops=args.batch * FLOPS, rounds=args.rounds, peak=peak)
    show(title, timings)
    save("train_step", {title: timings}, peak)


if __name__ == "__main__":
    main()
