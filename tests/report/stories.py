"""Made-up runs to tell of: curves with noise, classes that are confused, images that are drawn."""

from typing import Any

import numpy as np
import torch

from vitrail.base.scores import scores
from vitrail.report.answers import answer_sections
from vitrail.report.story import DataStory, EvaluationStory, Mistake, RunStory

CLOTHES = (
    "T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot",
)  # fmt: skip


def rows_of(steps: int, every: int = 100, seed: int = 0) -> list[dict[str, float | int]]:
    """Rows as in metrics.jsonl: one for each step, and an evaluation after each `every`."""
    rng = np.random.default_rng(seed)
    rows: list[dict[str, float | int]] = []
    for step in range(1, steps + 1):
        share = step / steps
        rate = 1e-3 * min(step / (0.05 * steps), 0.5 + 0.5 * float(np.cos(np.pi * share)))
        loss = 2.3 * float(np.exp(-6 * share)) + 0.25 + 0.08 * float(rng.standard_normal())
        rows.append(
            {
                "step": step,
                "loss": max(loss, 0.02),
                "accuracy": float(np.clip(1 - loss / 2.6 + 0.02 * rng.standard_normal(), 0, 1)),
                "learning_rate": rate,
                "gradient_norm": float(np.exp(rng.normal(0.2, 0.4))) * (1 + 3 * float(np.exp(-8 * share))),
            }
        )
        if step % every == 0 or step == steps:
            best = 0.32 + 2 * float(np.exp(-6 * share)) + 0.03 * share**2
            rows.append({"step": step, "val_loss": best, "val_accuracy": 0.9 - 0.7 * float(np.exp(-7 * share))})
    return rows


def confusion_of(classes: int, images: int, seed: int = 0) -> np.ndarray:
    """Counts with a strong diagonal and a few pairs that are hard to tell apart."""
    rng = np.random.default_rng(seed)
    chances = rng.exponential(0.2 / classes, (classes, classes)) * (rng.random((classes, classes)) < 0.5)
    for _ in range(classes // 4):
        one, other = rng.integers(0, classes, 2)
        chances[one, other] += 0.12
    chances[np.arange(classes), np.arange(classes)] = 0.9
    chances /= chances.sum(axis=1, keepdims=True)
    return np.stack([rng.multinomial(images, row) for row in chances])


def picture(channels: int, side: int, seed: int) -> torch.Tensor:
    """Draw something with edges and shades."""
    rng = np.random.default_rng(seed)
    down, right = np.mgrid[0:side, 0:side] / side
    planes = []
    for _ in range(channels):
        middle, radius = rng.uniform(0.3, 0.7, 2), rng.uniform(0.15, 0.4)
        inside = (down - middle[0]) ** 2 + (right - middle[1]) ** 2 < radius**2
        plane = 255 * np.where(inside, 0.5 + 0.5 * np.sin(9 * right + rng.uniform(0, 6)), 0.25 * down)
        planes.append(np.clip(plane + rng.normal(0, 6, plane.shape), 0, 255))
    return torch.from_numpy(np.stack(planes).astype(np.uint8))


def mistakes_of(labels: tuple[str, ...], count: int, *, channels: int = 1, side: int = 28) -> list[Mistake]:
    """Wrong answers with images."""
    rng = np.random.default_rng(1)
    return [
        Mistake(
            pixels=picture(channels, side, number),
            name=f"test/{number:05d}.png",
            truth=labels[number % len(labels)],
            answer=labels[(number + 1) % len(labels)],
            confidence=float(rng.uniform(0.6, 1)),
        )
        for number in range(count)
    ]


def evaluation_of(labels: tuple[str, ...], counts: np.ndarray, **changes: object) -> EvaluationStory:
    """Tell of answers on a test split."""
    values = {"split": "test", "labels": labels, "scores": scores(counts), "confusion": counts} | changes
    return EvaluationStory(**values)  # type: ignore[arg-type]


def story_of(labels: tuple[str, ...] = CLOTHES, *, steps: int = 300, **changes: Any) -> RunStory:
    """Tell of a run that went well."""
    counts = {"train": dict.fromkeys(labels, 540), "val": dict.fromkeys(labels, 60), "test": dict.fromkeys(labels, 100)}
    values: dict[str, object] = {
        "title": "ViT-Ti/4 on clothes",
        "metrics": rows_of(steps),
        "data": DataStory(where="sample", splits=counts, image_size=(28, 28), channels=1),
        "cost": {
            "images per second": 1830.4,
            "parameters": 1_204_234,
            "time": "2 min 41 s",
            "forward FLOPs per image": 51_300_000,
            "training FLOPs": "0.0453 exaFLOPs",
            "share of peak": "31.2% of 153 GFLOP/s",
            "core-hours": 0.0894,
        },
        "settings": {
            "seed": 0,
            "out": "runs/clothes",
            "model": {"name": "Ti/4", "dim": 192, "depth": 6, "dropout": 0.0, "head": {"pool": "mean", "zero": True}},
            "optimizer": {"name": "adamw", "learning_rate": 0.001, "betas": [0.9, 0.999], "decay": 0.05, "clip": 1.0},
            "data": {"labels": list(labels), "normalise": {"mean": [0.5], "std": [0.5]}},
        },
    }
    evaluation = changes.pop("evaluation", evaluation_of(labels, confusion_of(len(labels), 100), top5=0.991))
    mistakes = changes.pop("mistakes", mistakes_of(labels, 18))
    if evaluation is not None:
        values |= {"split": evaluation.split, "sections": answer_sections(evaluation, mistakes)}
    return RunStory(**(values | changes))  # type: ignore[arg-type]
