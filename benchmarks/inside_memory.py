"""Measure how much memory `vitrail inspect` takes beside the model itself, for docs/inside.md.

    python benchmarks/inside_memory.py [--model H/14] [--image-size 518] [--images 2] [--layers -1]

The model has random weights, and the images are noise: neither changes what is kept in memory. Resident memory is
read from Linux, whose highest mark is set back after the model was built, and again after a plain pass of one image.
"""

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from PIL import Image

import vitrail

MEGABYTE = 10**6


def resident(key: str) -> float:
    """Return the memory of this process in megabytes: `VmRSS` now, `VmHWM` at its highest."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) / MEGABYTE for line in lines if line.startswith(key))


def forget_the_highest() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="H/14")
    parser.add_argument("--image-size", type=int, default=518)
    parser.add_argument("--images", type=int, default=2)
    parser.add_argument("--layers", type=int, nargs="+", help="blocks whose attention is looked at; all by default")
    args = parser.parse_args()
    side = args.image_size
    model = vitrail.create(args.model, image_size=side, num_classes=10, seed=0).eval()
    forget_the_highest()
    alone = resident("VmRSS")
    with torch.inference_mode():
        model(torch.zeros(1, 3, side, side))
    plain = resident("VmHWM")
    forget_the_highest()
    before, start = resident("VmRSS"), time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        for number in range(args.images):
            noise = np.random.default_rng(number).integers(0, 256, (side, side, 3), dtype=np.uint8)
            Image.fromarray(noise).save(Path(folder, f"{number}.png"))
        vitrail.inspect(
            model, data=folder, images=args.images, examples=1, layers=args.layers or "all", importance="none"
        )
    seconds = time.perf_counter() - start
    print(f"{args.model} at {side} px: {alone:,.0f} MB; a pass of one image adds {plain - alone:,.0f} MB")
    print(f"inspect of {args.images} images adds {resident('VmHWM') - before:,.0f} MB, in {seconds:.0f} s")


if __name__ == "__main__":
    main()
