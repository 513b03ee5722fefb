"""The lists that published data sets come with: as `specimens.py`."""

import json
from pathlib import Path

import mutations as m
from specimens import Read, Specimen, data_set, picture

from vitrail.data.labels import read_labels
from vitrail.evaluation.real import IMAGES, read_real

IDS = ("n01440764", "n01443537")


def published() -> list[Specimen]:
    """Every list, changed one at a time."""
    lists: list[tuple[str, dict[str, bytes], dict[str, bytes], Read]] = [
        ("pets", *_pets(), data_set()),
        ("tiny", *_tiny(), data_set()),
        ("vtab", *_vtab(), data_set()),
        ("imagenet", *_imagenet("val_labels.txt", b"".join(_line(n) for n in range(1, 5))), data_set()),
        ("imagenet order", *_imagenet(_ORDER, ("\n".join(IDS * 2) + "\n").encode()), data_set()),
        ("labels text", {"x.txt": b"ant\nbee\n"}, {}, lambda at: str(read_labels(at / "x.txt", 2) and "")),
    ]
    found = [
        Specimen(name=f"{name} {file}", files={file: texts[file]} | texts | beside, mutate=m.lines, read=read)
        for name, texts, beside, read in lists
        for file in texts
    ]
    real = json.dumps([[0, 999]] * IMAGES).encode()
    return [*found, Specimen(name="real", files={"real.json": real}, mutate=m.json_file, read=_real, slow=True)]


_ORDER = "imagenet_2012_validation_synset_labels.txt"


def _line(number: int) -> bytes:
    return f"ILSVRC2012_val_{number:08}.JPEG {IDS[number % 2]}\n".encode()


def _imagenet(file: str, text: bytes) -> tuple[dict[str, bytes], dict[str, bytes]]:
    images = {f"val/ILSVRC2012_val_{number:08}.JPEG": picture(number, "JPEG") for number in range(1, 5)}
    return {file: text}, images | {f"train/{name}/{name}_1.JPEG": picture(1, "JPEG") for name in IDS}


def _pets() -> tuple[dict[str, bytes], dict[str, bytes]]:
    names = [f"{breed}_{number}" for breed in ("great_dane", "Siamese") for number in range(4)]
    rows = [f"{name} {1 + name.startswith('S')} 1 1\n" for name in names]
    texts = {"trainval": "".join(rows[::2]), "test": "#x\n" + "".join(rows[1::2])}
    return (
        {f"annotations/{name}.txt": text.encode() for name, text in texts.items()},
        {f"images/{name}.jpg": picture(number, "JPEG") for number, name in enumerate(names)},
    )


def _tiny() -> tuple[dict[str, bytes], dict[str, bytes]]:
    lines = (f"val_{number}.JPEG\t{IDS[number % 2]}\t0\t0\t9\t9\n" for number in range(4))
    texts = {
        "val/val_annotations.txt": "".join(lines),
        "wnids.txt": "".join(f"{name}\n" for name in IDS),
        "words.txt": "".join(f"{name}\tfish, number {name}\n" for name in IDS),
    }
    images = {f"train/{name}/images/{name}_{n}.JPEG": picture(n, "JPEG") for name in IDS for n in range(2)}
    images |= {f"val/images/val_{number}.JPEG": picture(number, "JPEG") for number in range(4)}
    return {name: text.encode() for name, text in texts.items()}, images


def _vtab() -> tuple[dict[str, bytes], dict[str, bytes]]:
    images = {f"images/{number}.jpg": picture(number, "JPEG") for number in range(6)}
    rows = [f"{name} {number % 2}\n" for number, name in enumerate(images)]
    texts = {"train800val200.txt": rows[:4], "test.txt": rows[4:]}
    return {name: "".join(lines).encode() for name, lines in texts.items()}, images


def _real(folder: Path) -> str:
    return "" if len(read_real(folder / "real.json")) == IMAGES else "another number of lists"
