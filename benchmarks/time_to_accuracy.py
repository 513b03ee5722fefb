"""Accuracy after a fixed wall time, training from scratch on two cores: `vitrail train` beside a usual recipe.

    python benchmarks/time_to_accuracy.py cifar10.npz fashion-mnist [--minutes 10] [--seed 0] [--keep RUNS]

Each DATA is anything that `vitrail data` opens with a train and a test split (`benchmarks/cifar10.py` makes the
first). Ours is `vitrail train DATA --minutes N`, with no other flag that changes what is learned. The usual recipe is
Hugging Face's ViT with patch 4, D 192, 6 layers, 3 heads, MLP 768; AdamW 1e-3, weight decay 0.05, batch 128, 200
steps of warm-up, then a cosine to the time limit; random crop with a border of 4 and flip. Its loop works on whole
batches in memory, so that it loses no time on loading. The clock of both covers everything from the start of training;
ours also start-up and the measuring of its speed.
"""

import argparse
import json
import math
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch
import torch.nn.functional as F
from transformers import ViTConfig, ViTForImageClassification

import vitrail.data


def arrays(where: str, split: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Return a split as pixels and classes."""
    data = vitrail.data.open(where, split=split)
    return torch.stack([data.image(index) for index in range(len(data))]), torch.as_tensor(data.targets).long()


def augment(images: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Shift by up to 4 pixels and flip, a whole batch at once."""
    batch, _, height, width = images.shape
    padded = F.pad(images, (4, 4, 4, 4))
    top, left = torch.randint(0, 9, (2, batch, 1, 1), generator=generator)
    rows, columns = top + torch.arange(height)[:, None], left + torch.arange(width)
    flipped = torch.rand(batch, 1, 1, generator=generator) < 0.5
    columns = torch.where(flipped, columns.flip(2), columns)
    return padded[torch.arange(batch)[:, None, None], :, rows, columns].permute(0, 3, 1, 2)


def usual(where: str, minutes: float, seed: int) -> dict[str, float]:
    """Train the usual recipe, and return its accuracy on the test split."""
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    images, targets = arrays(where, "train")
    channels, side = images.shape[1], images.shape[2]
    model = ViTForImageClassification(
        ViTConfig(
            image_size=side,
            patch_size=4,
            num_channels=channels,
            hidden_size=192,
            num_hidden_layers=6,
            num_attention_heads=3,
            intermediate_size=768,
            num_labels=int(targets.max()) + 1,
        )
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.05, fused=True)
    start, steps, limit = time.perf_counter(), 0, minutes * 60
    model.train()
    while (spent := time.perf_counter() - start) < limit:
        for group in optimizer.param_groups:
            group["lr"] = 1e-3 * min(1.0, (steps + 1) / 200) * 0.5 * (1 + math.cos(math.pi * spent / limit))
        chosen = torch.randint(0, len(images), (128,), generator=generator)
        pixels = augment(images[chosen], generator).float() / 127.5 - 1
        optimizer.zero_grad()
        F.cross_entropy(model(pixels).logits, targets[chosen]).backward()
        optimizer.step()
        steps += 1
    seconds = time.perf_counter() - start
    images, targets = arrays(where, "test")
    model.eval()
    with torch.inference_mode():
        answers = torch.cat([model(part.float() / 127.5 - 1).logits.argmax(1) for part in images.split(500)])
    return {"accuracy": (answers == targets).float().mean().item(), "seconds": seconds, "steps": steps}


def ours(where: str, minutes: float, seed: int, keep: str | None = None) -> dict[str, float]:
    """Train with our defaults in a process of its own, and return its accuracy on the test split."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(keep or folder) / f"{Path(where).stem}-{minutes:g}min-seed{seed}"
        words = ["train", where, "--minutes", str(minutes), "--seed", str(seed), "--out", str(out), "--json"]
        start = time.perf_counter()
        done = subprocess.run([sys.executable, "-m", "vitrail", *words], stdout=subprocess.PIPE, check=True)
        seconds = time.perf_counter() - start
    result = json.loads(done.stdout)
    assert result["split"] == "test", f"measured on {result['split']}"
    return {"accuracy": result["accuracy"], "seconds": seconds, "steps": result["steps"]}


def main() -> None:
    """Train, print and save."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="+")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=("vitrail", "usual"), help="one of the two")
    parser.add_argument("--keep", help="a folder in which our runs stay")
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    path = Path(__file__).parent / "results" / "time_to_accuracy.json"
    stored = json.loads(path.read_text()) if path.exists() else {}
    for where in args.data:
        title = f"{Path(where).stem}, {args.minutes:g} minutes, seed {args.seed}"
        row = stored.setdefault(title, {})
        for name, train in (("vitrail", ours), ("usual", usual)):
            if args.only in (None, name):
                more = {"keep": args.keep} if name == "vitrail" else {}
                row[name] = train(where, args.minutes, args.seed, **more) | {"date": time.strftime("%Y-%m-%d")}
                print(f"{title}: {name} {row[name]['accuracy']:.2%} in {row[name]['seconds']:.0f} s", flush=True)
        path.write_text(json.dumps(stored, indent=1) + "\n")
    accuracies = [row["vitrail"]["accuracy"] - row["usual"]["accuracy"] for row in stored.values() if len(row) == 2]
    print(f"ahead by {', '.join(f'{100 * gain:.1f}' for gain in accuracies)} points")


if __name__ == "__main__":
    main()
