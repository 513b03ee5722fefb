"""A good file of every kind of data that is read, how to change it, and how to read it.

A reader raises when it refuses a file; what it returns says what is wrong with what it accepted, and is empty if
nothing is. `signed` specimens carry a digest: changed in any bit, they must not be accepted.
"""

import gzip
import io
import json
import struct
import sys
import tarfile
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import mutations as m
import numpy as np
import pyarrow
import pyarrow.ipc
import pyarrow.parquet
import scipy.io
from PIL import Image

sys.path.insert(0, str(Path(__file__).parents[2]))  # the corpus of images is the tests'

from tests.data.corpus_images import good

from vitrail.base.errors import ImageError
from vitrail.data import open as open_data
from vitrail.data import save_index
from vitrail.data.labels import read_labels
from vitrail.data.pixels.decode import decode, probe
from vitrail.evaluation.class_map import read_class_map

Read = Callable[[Path], str]


@dataclass(frozen=True, kw_only=True)
class Specimen:
    """One file, perhaps among others, and its reader."""

    name: str
    files: dict[str, bytes]
    """What lies in the folder; the first one is changed."""
    mutate: m.Mutate
    read: Read
    """Gets the folder."""
    signed: bool = False
    """Whether every change must be refused."""
    slow: bool = False
    """Whether reading it is work, of which fewer inputs are tried."""


def picture(number: int = 0, form: str = "PNG") -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (6, 5), (40 * number % 256, 90, 7)).save(file, form)
    return file.getvalue()


def image(folder: Path) -> str:
    """Decode an image; its shape is that of its header."""
    data = (folder / "x").read_bytes()
    header, pixels = probe(data), decode(data)
    return "" if pixels.shape == (3, header.height, header.width) else f"{header} became {tuple(pixels.shape)}"


def data_set(name: str = "") -> Read:
    """Open data and read its first images; every target is a class, every image pixels or an `ImageError`."""

    def read(folder: Path) -> str:
        data = open_data(folder / name, skip_broken="100%")
        wrong = (data.targets < -1) | (data.targets >= len(data.labels))
        for index in range(min(len(data), 4)):
            try:
                assert data.image(index).ndim == 3
            except ImageError:
                continue
        return "a target that is not a class" if wrong.any() else ""

    return read


def images() -> list[Specimen]:
    """Every kind of image."""
    structured = {"png": m.png, "jpeg": m.any_of(m.jpeg, m.fields(1))}
    return [
        Specimen(
            name=kind, files={"x": data}, mutate=m.any_of(structured.get(kind.split()[0], m.fields(1))), read=image
        )
        for kind, data in good().items()
    ]


def tables() -> list[Specimen]:
    """Lists, parquet, arrow."""
    beside = {f"{number}.png": picture(number) for number in range(4)}
    csv = b"path,label,split\n" + b"".join(
        b"%d.png,%s,%s\n" % (n, (b"cat", b"dog")[n % 2], (b"train", b"val")[n // 3]) for n in range(4)
    )
    quoted = csv.replace(b"0.png", b'"0.png"')
    rows = b"".join(json.dumps({"path": f"{n}.png", "label": n % 2}).encode() + b"\n" for n in range(4))
    table = pyarrow.table({"image": [{"bytes": picture(n), "path": "x"} for n in range(9)], "label": list("abc" * 3)})
    packed = io.BytesIO()
    pyarrow.parquet.write_table(table, packed, row_group_size=4)
    stream = io.BytesIO()
    with pyarrow.ipc.new_stream(stream, table.schema) as writer:
        writer.write_table(table, max_chunksize=4)
    named = stream.getvalue(), json.dumps({"_data_files": [{"filename": "x.arrow"}]}).encode()
    features = {"features": {"label": {"names": ["a", "b", "c"]}}}
    saved = {"x.arrow": named[0], "state.json": named[1], "dataset_info.json": json.dumps(features).encode()}
    return [
        Specimen(name="csv", files={"x.csv": csv} | beside, mutate=m.lines, read=data_set("x.csv")),
        Specimen(name="csv quoted", files={"x.csv": quoted} | beside, mutate=m.lines, read=data_set("x.csv")),
        Specimen(name="json lines", files={"x.jsonl": rows} | beside, mutate=m.lines, read=data_set("x.jsonl")),
        Specimen(
            name="parquet",
            files={"x.parquet": packed.getvalue()},
            mutate=m.any_of(m.fields(1)),
            read=data_set("x.parquet"),
        ),
        Specimen(name="arrow", files=saved, mutate=m.any_of(m.fields(4)), read=data_set()),
        *(
            Specimen(name=f"arrow {first}", files={first: saved[first]} | saved, mutate=m.json_file, read=data_set())
            for first in ("state.json", "dataset_info.json")
        ),
        Specimen(
            name="labels",
            files={"x.json": b'["ant", "bee"]'},
            mutate=m.json_file,
            read=lambda at: str(read_labels(at / "x.json", 2) and ""),
        ),
        Specimen(
            name="class map",
            files={"x.json": b'{"mug": ["cup", 3]}'},
            mutate=m.json_file,
            read=lambda at: str(read_class_map(at / "x.json") and ""),
        ),
        Specimen(
            name="class map csv",
            files={"x.csv": b"mug,cup\nmug,3\n"},
            mutate=m.lines,
            read=lambda at: str(read_class_map(at / "x.csv") and ""),
        ),
    ]


def arrays() -> list[Specimen]:
    """npz, idx, CIFAR, MATLAB."""
    chance = np.random.default_rng(0)
    pixels, labels = chance.integers(0, 256, (6, 5, 4, 3), np.uint8), np.arange(6) % 3
    plain, packed = io.BytesIO(), io.BytesIO()
    np.savez(plain, x_train=pixels, y_train=labels, class_names=np.array(["a", "b", "c"]))
    np.savez_compressed(packed, x=pixels / np.float32(255), y=labels)
    idx = bytes([0, 0, 8, 3]) + struct.pack(">3I", 6, 5, 4) + pixels[..., 0].tobytes()
    beside = {"train-labels-idx1-ubyte": bytes([0, 0, 8, 1]) + struct.pack(">I", 6) + labels.astype(np.uint8).tobytes()}
    cifar = np.concatenate([labels[:, None], chance.integers(0, 256, (6, 3072))], 1).astype(np.uint8).tobytes()
    flowers: dict[str, bytes] = {}
    for name, values in {
        "imagelabels.mat": {"labels": labels[None] + 1},
        "setid.mat": {"trnid": [[1, 2]], "valid": [[3]], "tstid": [[4, 5, 6]]},
    }.items():
        file = io.BytesIO()
        scipy.io.savemat(file, values, do_compression=name == "setid.mat")
        flowers[name] = file.getvalue()
    flowers |= {f"jpg/image_{number:05}.jpg": picture(number, "JPEG") for number in range(1, 7)}
    inside = m.zipped({".npy": m.npy})
    return [
        Specimen(name="npz", files={"x.npz": plain.getvalue()}, mutate=m.any_of(inside), read=data_set("x.npz")),
        Specimen(
            name="npz packed", files={"x.npz": packed.getvalue()}, mutate=m.any_of(inside), read=data_set("x.npz")
        ),
        Specimen(name="idx", files={"train-images-idx3-ubyte": idx} | beside, mutate=m.any_of(m.idx), read=data_set()),
        Specimen(
            name="idx.gz",
            files={"train-images-idx3-ubyte.gz": gzip.compress(idx)} | beside,
            mutate=m.any_of(m.gzipped(m.idx)),
            read=data_set(),
        ),
        Specimen(name="cifar", files={"data_batch_1.bin": cifar}, mutate=m.raw, read=data_set()),
        Specimen(name="matlab", files=flowers, mutate=m.any_of(m.matlab), read=data_set()),
        Specimen(
            name="matlab packed",
            files={"setid.mat": flowers["setid.mat"]} | flowers,
            mutate=m.any_of(m.matlab),
            read=data_set(),
        ),
    ]


def archives() -> list[Specimen]:
    """Tar shards in three dialects, and an index of them."""
    members: dict[str, bytes] = {}
    for number in range(4):
        key = f"{'deep/' * 30}{number}"
        members |= {f"{key}.png": picture(number), f"{key}.cls": b"%d" % (number % 2), f"{key}.json": b'{"label": 1}'}
    forms = {"ustar": tarfile.USTAR_FORMAT, "gnu": tarfile.GNU_FORMAT, "pax": tarfile.PAX_FORMAT}
    found = [
        Specimen(
            name=f"tar {name}",
            files={"x.tar": m.long_tar(members, form), "labels.txt": b"cat\ndog\n"},
            mutate=m.any_of(m.tar),
            read=data_set("x.tar"),
        )
        for name, form in forms.items()
    ]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "x.tar").write_bytes(found[0].files["x.tar"])
        save_index(folder / "x.tar", folder / "x.index")
        files = {"x.index": (folder / "x.index").read_bytes(), "x.tar": found[0].files["x.tar"]}
    index = Specimen(name="index", files=files, mutate=m.raw, read=data_set("x.index"), signed=True)
    resigned = Specimen(name="index resigned", files=files, mutate=m.safetensors(sign=True), read=data_set("x.index"))
    return [*found, index, resigned]
