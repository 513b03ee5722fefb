"""Tasks of VTAB-1k that were made up."""

from pathlib import Path

from PIL import Image

from tests.training.making import made_dataset


def made_task(folder: Path, seed: int) -> None:
    """Twelve training images and nine test images in three classes, as lists."""
    for name, count in (("train800val200", 12), ("test", 9)):
        dataset = made_dataset(count, seed=seed + len(name))
        lines = []
        for index, image in enumerate(dataset.pictures.images):
            path = folder / "images" / name / f"{index:06}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(image).save(path)
            lines.append(f"images/{name}/{index:06}.png {dataset.targets[index]}\n")
        (folder / f"{name}.txt").write_text("".join(lines))
