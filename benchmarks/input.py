"""Measure how fast JPEG photos become augmented training batches of 224 pixels, on one core.

    python benchmarks/input.py [FOLDER] [--images 256] [--rounds 5] [--save]

FOLDER has class folders of photos; without one, photos are made up: 500x375 pixels of about 100 KB. Every contestant
reads the files, decodes, crops, resizes, flips, and ends with a normalised float batch. The peer is the usual pipeline
of Pillow and torchvision, written out: Image.open, convert, crop and resize with antialiasing, flip, to a tensor,
normalise, stack. It gets the same boxes, flips and operations as ours, so that both do the same work. Each contestant
has a process of its own, on the same core, in rounds of random order (`contest.py`); the file cache is warm.
Our workers keep the memory that they free; the peer runs both ways, since it could do that too. Arrays of 32 pixels,
for which many images are cut at once, stand in a table of their own without a peer.
"""

import argparse
import json
import multiprocessing
import os
import platform
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
import torch
from contest import Contestant, paired, race
from PIL import Image, ImageEnhance, ImageOps

import vitrail.data
from vitrail.base.memory import keep_freed_memory
from vitrail.base.seeds import key, keys, uniform
from vitrail.data.augment.crop import inception_box
from vitrail.data.augment.randaugment import OPERATIONS as NAMES
from vitrail.data.augment.settings import CROP, FLIP, OPERATIONS, Augmentation
from vitrail.data.dataset import Dataset
from vitrail.data.loader import training_batches
from vitrail.data.preprocessing import preset
from vitrail.data.sampler import training_order
from vitrail.data.transforms import normalise

SIZE = 224
SEED = 0
PREPROCESSING = preset("torchvision")
MEAN, STD = (torch.tensor(values)[:, None, None] for values in (PREPROCESSING.mean, PREPROCESSING.std))
PLAIN = Augmentation(antialias=True)
ROWS = {
    "crop and flip": PLAIN,
    "crop and flip, no antialias": Augmentation(),
    "crop, flip and RandAugment(2, 9)": replace(PLAIN, layers=2, magnitude=9.0),
}


def ours(data: Dataset, augmentation: Augmentation, batch: int, steps: int, size: int = SIZE) -> None:
    for step in training_batches(
        data, image_size=(size, size), augmentation=augmentation, batch=batch, seed=SEED, stop_step=steps
    ):
        normalise(step.images, PREPROCESSING)


def peer(data: Dataset, paths: list[Path], augmentation: Augmentation, batch: int, steps: int) -> None:
    order = training_order(data, seed=SEED)
    for step in range(steps):
        epochs, indices = order.indices(np.arange(step * batch, (step + 1) * batch))
        draws = uniform(keys(key(SEED, "augment"), epochs, indices), augmentation.draws).tolist()
        torch.stack([usual(paths[index], augmentation, one) for index, one in zip(indices, draws, strict=True)])


def usual(path: Path, augmentation: Augmentation, draws: list[float]) -> torch.Tensor:
    with Image.open(path) as file:
        image = file.convert("RGB")
    box = inception_box((image.height, image.width), augmentation.area, augmentation.aspect, draws[CROP])
    top, left, height, width = box
    image = image.crop((left, top, left + width, top + height)).resize((SIZE, SIZE), Image.Resampling.BILINEAR)
    if draws[FLIP] < augmentation.flip:
        image = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    operations = draws[OPERATIONS]
    for which, side in zip(operations[::2], operations[1::2], strict=True):
        image = operate(image, NAMES[int(which * len(NAMES))], augmentation.magnitude / (10 if side < 0.5 else -10))
    tensor = torch.from_numpy(np.array(image)).permute(2, 0, 1).contiguous().to(torch.float32).div(255)
    return tensor.clone().sub_(MEAN).div_(STD)


def operate(image: Image.Image, name: str, level: float) -> Image.Image:
    def warp(*matrix: float) -> Image.Image:
        return image.transform(image.size, Image.Transform.AFFINE, matrix, Image.Resampling.NEAREST)

    factor = 1 + 0.9 * level
    ways: dict[str, Callable[[], Image.Image]] = {
        "identity": lambda: image,
        "autocontrast": lambda: ImageOps.autocontrast(image),
        "equalize": lambda: ImageOps.equalize(image),
        "solarize": lambda: ImageOps.solarize(image, round(256 * (1 - abs(level)))),
        "posterize": lambda: ImageOps.posterize(image, 8 - round(4 * abs(level))),
        "brightness": lambda: ImageEnhance.Brightness(image).enhance(factor),
        "contrast": lambda: ImageEnhance.Contrast(image).enhance(factor),
        "saturation": lambda: ImageEnhance.Color(image).enhance(factor),
        "sharpness": lambda: ImageEnhance.Sharpness(image).enhance(factor),
        "rotate": lambda: image.rotate(30 * level, Image.Resampling.NEAREST),
        "shear_x": lambda: warp(1, 0.3 * level, 0, 0, 1, 0),
        "shear_y": lambda: warp(1, 0, 0, 0.3 * level, 1, 0),
        "translate_x": lambda: warp(1, 0, 0.45 * level * SIZE, 0, 1, 0),
        "translate_y": lambda: warp(1, 0, 0, 0, 1, 0.45 * level * SIZE),
    }
    return ways[name]()


class InItsOwnProcess:
    """A contestant that runs in a forked process whenever it is called."""

    def __init__(self, work: Contestant, *, keeps_memory: bool) -> None:
        self.here, there = multiprocessing.Pipe()
        self.process = multiprocessing.get_context("fork").Process(
            target=self._serve, args=(there, work, keeps_memory), daemon=True
        )
        self.process.start()

    def __call__(self) -> None:
        self.here.send("go")
        self.here.recv()

    @staticmethod
    def _serve(pipe: Connection, work: Contestant, keeps_memory: bool) -> None:
        if keeps_memory:
            keep_freed_memory()
        while pipe.recv():
            work()
            pipe.send("done")

    def end(self) -> None:
        self.here.send("")
        self.process.join()


def make_photos(folder: Path, count: int) -> None:
    """Photos of clouds and fine grain, which compress as photos do."""
    rng = np.random.default_rng(0)
    for number in range(count):
        image = np.zeros((375, 500, 3))
        for cells, strength in ((4, 90), (16, 45), (64, 25), (256, 14)):
            cloud = rng.normal(0, strength, (cells * 3 // 4, cells, 3)).astype(np.float32)
            planes = [Image.fromarray(cloud[:, :, at]).resize((500, 375), Image.Resampling.BICUBIC) for at in range(3)]
            image += np.stack([np.asarray(plane) for plane in planes], 2)
        path = folder / f"class{number % 2}" / f"{number:04}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.clip(image + 128, 0, 255).astype(np.uint8)).save(path, quality=90)


def measure_photos(folder: Path, images: int, batch: int, rounds: int) -> dict[str, dict[str, float]]:
    data = vitrail.data.open(folder)
    data = data.take(np.arange(min(images, len(data))))
    paths = [folder / data.name(index) for index in range(len(data))]
    steps = max(len(data) // batch, 1)
    sizes = [Image.open(path).size for path in paths]
    print(
        f"{len(paths)} photos, {np.mean([w * h for w, h in sizes]) / 1e6:.2f} megapixels and "
        f"{np.mean([path.stat().st_size for path in paths]) / 1000:.0f} KB on average"
    )
    results: dict[str, dict[str, float]] = {}
    for title, augmentation in ROWS.items():
        print(f"\n{title}\n{'':40}{'images/s':>10}{'ours to it':>14}")
        mine = InItsOwnProcess(partial(ours, data, augmentation, batch, steps), keeps_memory=True)
        theirs = partial(peer, data, paths, augmentation, batch, steps)
        contestants = {
            "vitrail": mine,
            "Pillow, torchvision's way": InItsOwnProcess(theirs, keeps_memory=False),
            "the same, keeping memory": InItsOwnProcess(theirs, keeps_memory=True),
        }
        seconds = race(dict(contestants), rounds)
        for name, own in seconds.items():
            speed = steps * batch / statistics.median(own)
            print(f"{name:40}{speed:10.1f}   {paired(seconds['vitrail'], own)}")
            results.setdefault(title, {})[name] = round(speed, 1)
        ratio = paired(seconds["vitrail"], seconds["Pillow, torchvision's way"])
        results[title] |= {"ratio": ratio.median, "low": ratio.low, "high": ratio.high}
        for contestant in contestants.values():
            contestant.end()
    return results


def measure_arrays(batch: int, rounds: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "arrays.npz"
        images = np.random.default_rng(0).integers(0, 256, (4096, 32, 32, 3), dtype=np.uint8)
        np.savez(path, x_train=images, y_train=np.arange(4096) % 10, x_test=images[:10], y_test=np.arange(10))
        data = vitrail.data.open(path, split="train")
        rows = {
            "inception crop and flip": Augmentation(),
            "pad crop and flip": Augmentation(crop="pad"),
            "pad crop, flip, mixup and cutmix": Augmentation(crop="pad", mixup=0.2, cutmix=1.0),
        }
        ways = {
            title: InItsOwnProcess(partial(ours, data, how, batch, 4096 // batch, 32), keeps_memory=True)
            for title, how in rows.items()
        }
        seconds = race(dict(ways), rounds)
        for way in ways.values():
            way.end()
    print(f"\narrays of 32x32x3\n{'':34}{'images/s':>10}")
    speeds = {name: round(4096 / statistics.median(own)) for name, own in seconds.items()}
    for name, speed in speeds.items():
        print(f"{name:34}{speed:10}")
    return speeds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", default=None)
    parser.add_argument("--images", type=int, default=256)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--save", action="store_true", help="write benchmarks/results/input.json")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    with tempfile.TemporaryDirectory() as name:
        if arguments.folder is None:
            make_photos(Path(name), arguments.images)
        folder = arguments.folder or Path(name)
        photos = measure_photos(folder, arguments.images, arguments.batch, arguments.rounds)
    report = {
        "date": time.strftime("%Y-%m-%d"),
        "machine": {"threads": torch.get_num_threads(), "cpu": torch.backends.cpu.get_cpu_capability()},
        "torch": torch.__version__,
        "python": platform.python_version(),
        "photos": "given" if arguments.folder else "made up",
        "images": arguments.images,
        "batch": arguments.batch,
        "images_per_second": photos,
        "arrays_of_32_pixels": measure_arrays(128, arguments.rounds),
    }
    if arguments.save:
        path = Path(__file__).parent / "results" / "input.json"
        path.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
