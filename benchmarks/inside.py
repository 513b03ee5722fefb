"""Train a Vision Transformer, a hybrid and a ResNet of about one cost, for docs/inside.md: what do they show inside?

    python benchmarks/inside.py sample --name sample --out runs/inside [--seeds 0 1 2] [--jobs 2]
    python benchmarks/inside.py cifar10.npz --name cifar10 --out runs/inside
    python benchmarks/inside.py photos/ --name photos --out runs/inside

All three train on the same images in the same order for the same number of steps, by the rule of `vitrail train`, in a
process with one thread each. The Vision Transformer and the hybrid have the paper's class token and learned positions.
Called again, finished runs are left alone and stopped ones resumed. `vitrail inspect`, `stress` and `explain` then look
at `runs/inside/*/model.safetensors`.
"""

import argparse
import multiprocessing
from dataclasses import replace
from pathlib import Path

import vitrail
from vitrail.base.settings import to_dict
from vitrail.model.backbone import BackboneConfig
from vitrail.model.config import ViTConfig
from vitrail.model.family import ModelConfig
from vitrail.model.resnet import ResNetConfig

SHAPES = {
    # name: image, channels and classes; patch in pixels; width of the hybrid's root and its MLP; width of the ResNet
    "sample": (32, 1, 10, 4, 16, 72, 28),
    "cifar10": (32, 3, 10, 4, 16, 64, 26),
    "photos": (64, 3, 10, 8, 8, 48, 12),
}
STEPS = {"sample": 200, "cifar10": 1500, "photos": 300}


def models(name: str) -> dict[str, ModelConfig]:
    """Return the three models for data of this name; costs within 8% of the Vision Transformer's."""
    side, channels, classes, patch, root, hybrid_mlp, width = SHAPES[name]
    images = {"image_size": (side, side), "channels": channels, "num_classes": classes}
    vit = ViTConfig(dim=48, depth=4, num_heads=4, mlp_dim=96, patch_size=(patch, patch), gelu="erf", **images)
    backbone = BackboneConfig(blocks=(1,), width=root, norm_groups=4)
    cells = (patch // 4, patch // 4)
    return {
        "vit": vit,
        "hybrid": replace(vit, backbone=backbone, mlp_dim=hybrid_mlp, patch_size=cells),
        "resnet": ResNetConfig(blocks=(2, 2, 2), width=width, norm_groups=2, **images),
    }


def train(job: tuple[str, str, str, int, Path, int | None]) -> None:
    data, name, model, seed, out, steps = job
    folder = out / f"{name}-{model}-{seed}"
    if (folder / "result.json").is_file():
        return
    steps = steps or STEPS[name]
    run = vitrail.train(
        data,
        steps=steps,
        seed=seed,
        batch=64,
        evaluate_every=steps,
        threads=1,
        out=folder,
        settings={"model": to_dict(models(name)[model])},
    )
    print(f"{folder.name:24}{run.accuracy:8.2%}{vitrail.cost(run.model).macs / 1e6:8.1f} million MACs", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("--name", choices=list(SHAPES), required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--steps", type=int, help="another number of steps than the documented one")
    parser.add_argument("--jobs", type=int, default=2, help="runs at the same time")
    args = parser.parse_args()
    jobs = [
        (args.data, args.name, model, seed, args.out, args.steps) for seed in args.seeds for model in models(args.name)
    ]
    with multiprocessing.get_context("spawn").Pool(args.jobs, maxtasksperchild=1) as pool:
        pool.map(train, jobs, chunksize=1)


if __name__ == "__main__":
    main()
