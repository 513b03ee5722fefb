"""Whole training loops, data included: Vitrail beside a timm-style loop and the Hugging Face Trainer, in one run.

    benchmarks/peers.sh /tmp/peers && /tmp/peers/bin/python benchmarks/train_loop.py PHOTOS [--rounds 4]

PHOTOS is a folder of class folders of JPEG files. Two contests: S/16 on photos at 224 px, and a small ViT (D 192, 6
layers, patch 4) on arrays of 32 px. Every contestant trains the same architecture with the same batch, AdamW, random
resized crop and flip, from the same images; each gets its better choice of 0 and 2 worker processes. The clock runs
from the end of the first steps to the end of the last, so that starting up does not count; each measurement has a
process of its own. The timm-style loop has
timm's training transform and model; the Trainer has torchvision's usual transforms and Hugging Face's model.
"""

import argparse
import json
import multiprocessing
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import peers_shim  # noqa: F401  (must come before timm and torchvision)
import timm.optim
import torch
import torch.nn.functional as F
from contest import compare, machine, show
from PIL import Image
from timm.data import create_transform
from torch.utils.data import DataLoader, Dataset
from torchvision.transforms import v2
from transformers import Trainer, TrainerCallback, TrainingArguments, ViTConfig, ViTForImageClassification

from vitrail.base.ranks import Ranks
from vitrail.data.augment.settings import Augmentation
from vitrail.data.catalog import open as open_data
from vitrail.data.preprocessing import preset
from vitrail.model.config import ViTConfig as OurConfig
from vitrail.runs.config import RunConfig
from vitrail.runs.data import RunData
from vitrail.runs.data_config import DataConfig
from vitrail.runs.execution import Execution
from vitrail.runs.folder import RunFolder
from vitrail.runs.train import Run
from vitrail.training.optimizers import OptimizerConfig
from vitrail.training.schedules import Schedule
from vitrail.training.signals import StopSignal

WARM = 3
SIZES = {
    "photos": {"dim": 384, "depth": 12, "heads": 6, "mlp": 1536, "patch": 16, "side": 224, "batch": 16, "steps": 11},
    "arrays": {"dim": 192, "depth": 6, "heads": 3, "mlp": 768, "patch": 4, "side": 32, "batch": 128, "steps": 19},
}


class Pictures(Dataset):
    """Images for the peers: a transform of a Pillow image, and its class."""

    def __init__(self, items: list[tuple[object, int]], transform: Callable[[Image.Image], torch.Tensor]) -> None:
        self.items, self.transform = items, transform

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        picture, target = self.items[index]
        image = Image.fromarray(picture) if isinstance(picture, np.ndarray) else Image.open(picture)
        return self.transform(image.convert("RGB")), target


def vitrail_loop(size: dict[str, int], data: RunData, workers: int, steps: int) -> float:
    """Time our loop from its `WARM`th step on."""
    side = (size["side"], size["side"])
    model = OurConfig(
        dim=size["dim"],
        depth=size["depth"],
        num_heads=size["heads"],
        mlp_dim=size["mlp"],
        patch_size=(size["patch"], size["patch"]),
        image_size=side,
        num_classes=len(data.train.labels),
        gelu="erf",
    )
    config = RunConfig(
        data=DataConfig(where="benchmark"),
        facts=data.facts,
        model=model,
        preprocessing=preset("google", image_size=side),
        augmentation=Augmentation(area=(0.08, 1.0), antialias=True),
        optimizer=OptimizerConfig(weight_decay=0.05),
        schedule=Schedule(peak=1e-3),
        steps=steps,
        batch=size["batch"],
        evaluate_every=10**6,
        log_every=1,
        execution=Execution(workers=workers, checkpoint_every=10**6, device="cpu"),
    )
    moments: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        run = Run(
            config=config, data=replace(data, evaluation=None), folder=RunFolder(path=Path(folder)), ranks=Ranks()
        )
        loop = run.loop(watch=lambda *_: moments.append(time.perf_counter()), stop=StopSignal())
        loop.run()
    return (moments[steps - 1] - moments[WARM - 1]) / (steps - WARM)


def timm_loop(size: dict[str, int], items: list[tuple[object, int]], workers: int, steps: int) -> float:
    """Time a loop as timm's training script has it."""
    transform = create_transform(
        input_size=(3, size["side"], size["side"]), is_training=True, color_jitter=None, interpolation="bilinear"
    )
    loader = DataLoader(
        Pictures(items, transform), batch_size=size["batch"], shuffle=True, drop_last=True, num_workers=workers
    )
    model = timm.models.vision_transformer.VisionTransformer(
        img_size=size["side"],
        patch_size=size["patch"],
        embed_dim=size["dim"],
        depth=size["depth"],
        num_heads=size["heads"],
        mlp_ratio=size["mlp"] / size["dim"],
        num_classes=1 + max(target for _, target in items),
    )
    optimizer = timm.optim.create_optimizer_v2(model, opt="adamw", lr=1e-3, weight_decay=0.05)
    moments: list[float] = []
    model.train()
    for images, targets in _endless(loader):
        loss = F.cross_entropy(model(images), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        loss.item()
        moments.append(time.perf_counter())
        if len(moments) == steps:
            return (moments[-1] - moments[WARM - 1]) / (steps - WARM)
    raise AssertionError


def trainer_loop(size: dict[str, int], items: list[tuple[object, int]], workers: int, steps: int) -> float:
    """Time the Hugging Face Trainer."""
    transform = v2.Compose(
        [
            v2.RandomResizedCrop(size["side"]),
            v2.RandomHorizontalFlip(),
            v2.ToImage(),
            v2.ToDtype(torch.float32, scale=True),
            v2.Normalize([0.5] * 3, [0.5] * 3),
        ]
    )
    config = ViTConfig(
        image_size=size["side"],
        patch_size=size["patch"],
        hidden_size=size["dim"],
        num_hidden_layers=size["depth"],
        num_attention_heads=size["heads"],
        intermediate_size=size["mlp"],
        num_labels=1 + max(target for _, target in items),
    )
    moments: list[float] = []

    class Clock(TrainerCallback):
        def on_step_end(self, *_: object, **__: object) -> None:
            moments.append(time.perf_counter())

    def collate(batch: list[tuple[torch.Tensor, int]]) -> dict[str, torch.Tensor]:
        images, targets = zip(*batch, strict=True)
        return {"pixel_values": torch.stack(images), "labels": torch.tensor(targets)}

    with tempfile.TemporaryDirectory() as folder:
        settings = TrainingArguments(
            output_dir=folder,
            max_steps=steps,
            per_device_train_batch_size=size["batch"],
            dataloader_num_workers=workers,
            dataloader_drop_last=True,
            learning_rate=1e-3,
            weight_decay=0.05,
            remove_unused_columns=False,
            save_strategy="no",
            report_to=[],
            disable_tqdm=True,
            use_cpu=True,
        )
        trainer = Trainer(
            model=ViTForImageClassification(config),
            args=settings,
            train_dataset=Pictures(items, transform),
            data_collator=collate,
            callbacks=[Clock()],
        )
        trainer.train()
    return (moments[-1] - moments[WARM - 1]) / (steps - WARM)


def _endless(loader: DataLoader) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    while True:
        yield from loader


def main() -> None:
    """Measure, print and save."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("photos", help="a folder of class folders with JPEG files")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--only", choices=tuple(SIZES))
    args = parser.parse_args()
    path = Path(__file__).parent / "results" / "train_loop.json"
    stored = json.loads(path.read_text()) if path.exists() else {}
    for kind, size in SIZES.items():
        if args.only in (None, kind):
            stored[kind] = contest(kind, size, args)
            path.write_text(json.dumps(stored, indent=1) + "\n")


def measure(name: str, kind: str, photos: str, workers: int, threads: int) -> float:
    """Return one contestant's seconds for a step, in a process of its own."""
    multiprocessing.set_start_method("fork", force=True)  # the usual one, for the workers of all
    torch.set_num_threads(threads)
    size = SIZES[kind]
    with tempfile.TemporaryDirectory() as folder:
        if kind == "photos":
            train = open_data(photos, split="train")
            items: list[tuple[object, int]] = [
                (Path(train.name(index)), int(train.targets[index])) for index in range(len(train))
            ]
        else:
            pixels = np.random.default_rng(0).integers(0, 256, (4096, 32, 32, 3), dtype=np.uint8)
            items = [(image, number % 10) for number, image in enumerate(pixels)]
            np.savez(Path(folder) / "noise.npz", x=pixels, y=np.arange(4096) % 10)
            train = open_data(Path(folder) / "noise.npz")
        if name == "vitrail":
            return vitrail_loop(size, RunData(train=train, evaluation=None), workers, size["steps"])
        loop = timm_loop if name == "timm-style loop" else trainer_loop
        return loop(size, items, workers, size["steps"])


def contest(kind: str, size: dict[str, int], args: argparse.Namespace) -> dict[str, object]:
    """Run everyone in each round, with and without workers, in random order; the better choice of each counts."""
    contestants = ("vitrail", "timm-style loop", "Hugging Face Trainer")
    rounds: dict[tuple[str, int], list[float]] = {(name, workers): [] for name in contestants for workers in (0, 2)}
    order = random.Random(0)  # noqa: S311
    for _ in range(args.rounds):
        for name, workers in order.sample(list(rounds), len(rounds)):
            with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as alone:
                seconds = alone.submit(measure, name, kind, args.photos, workers, args.threads).result()
            rounds[name, workers].append(seconds)
            print(f"{kind}: {name}, {workers} workers: {size['batch'] / seconds:.2f} images/s", flush=True)
    better = {name: min((rounds[name, workers] for workers in (0, 2)), key=statistics.median) for name in contestants}
    timings = compare(better, ours="vitrail", images=size["batch"])
    show(f"{kind}: {size}", timings)
    each = {f"{name}, {workers} workers": statistics.median(own) for (name, workers), own in rounds.items()}
    return machine() | {
        "images_per_second": {name: size["batch"] / seconds for name, seconds in each.items()},
        "timings": [asdict(timing) for timing in timings],
    }


if __name__ == "__main__":
    main()
