"""The kind of data behind a path, found by its contents; the first line that fits decides.

| where                                                          | kind                           |
|----------------------------------------------------------------|--------------------------------|
| `sample`                                                       | the embedded sample            |
| `fashion-mnist`, when nothing here is called so                | Debian's dataset-fashion-mnist |
| a name with braces or wildcards that ends in .tar              | shards                         |
| a file: .tar, .csv .tsv .jsonl .ndjson, .npz, .parquet, idx    | shards, manifest, arrays, ...  |
| a file that begins like an index                               | a saved index                  |
| a file with the extension of an image                          | one image                      |
| a folder with dataset_dict.json or state.json                  | a saved Hugging Face data set  |
| a folder with idx files                                        | MNIST and its kin              |
| a folder with data_batch_*.bin, or train.bin                   | CIFAR-10, CIFAR-100            |
| a folder with imagelabels.mat, setid.mat and jpg/              | Flowers-102                    |
| a folder with annotations/trainval.txt and images/             | Pets                           |
| a folder with wnids.txt and val/val_annotations.txt            | Tiny-ImageNet-200              |
| a folder with train800val200.txt or train800.txt               | a task of VTAB-1k              |
| a folder with .tar files, or split folders with them           | shards                         |
| a folder with .parquet files, or data/ with them               | parquet                        |
| any other folder                                               | class folders, or flat         |
"""

import re
from dataclasses import replace
from pathlib import Path

from vitrail.base.errors import InputError, did_you_mean
from vitrail.data.classes import few
from vitrail.data.index import is_index
from vitrail.data.sources import (
    cifar,
    flowers,
    folder,
    huggingface,
    idx,
    manifest,
    npz,
    parquet,
    pets,
    sample,
    shards,
    tiny_imagenet,
    vtab,
)
from vitrail.data.sources.indexed import open_index
from vitrail.data.sources.patterns import find_in_folder, find_pattern, is_pattern, split_in
from vitrail.data.sources.pile import Pile, is_image

_ELSEWHERE = re.compile(r"(pipe:|[a-z][a-z0-9+.-]+://)", re.I)
_DEBIAN = "fashion-mnist"


def find(where: str, *, root: Path | None = None, loose: bool = False) -> Pile:
    """Open the data that a name means; `loose` takes images beside class folders too."""
    if where == sample.NAME:
        return sample.open_sample()
    if _ELSEWHERE.match(where):
        raise InputError(f"{where} is not on this machine; nothing is fetched or run. Give a file or a folder.")
    path = Path(where)
    try:
        if where == _DEBIAN and not path.exists():
            return _debian()
        if is_pattern(where) and not path.exists():
            files = find_pattern(where)
            return shards.open_shards(files, where, beside=files[0][0].parent)
        if path.is_file():
            return _file(path, root)
        if path.is_dir():
            return _folder(path, root, loose)
    except OSError as error:
        raise InputError(f"{where} cannot be opened: {error.strerror or error}.") from None
    if path.exists():
        raise InputError(f"{where} is neither a file nor a folder.")
    raise InputError(f"there is no {where}; give a folder, a file, or {sample.NAME!r}.{_near(path)}")


def _file(path: Path, root: Path | None) -> Pile:
    """Open a file by its extension, or by its first bytes."""
    suffix = path.suffix.lower()
    if idx.is_idx(path):
        return idx.open_idx(path)
    if suffix == ".tar":
        return shards.open_shards([(path, split_in(path))], str(path), beside=path.parent)
    if suffix in manifest.SUFFIXES:
        return manifest.open_manifest(path, root=root)
    if suffix == ".npz":
        return npz.open_npz(path)
    if suffix == ".parquet":
        return parquet.open_parquet([path], str(path))
    if is_index(path):
        return open_index(path, root=root)
    if is_image(path.name):
        return folder.open_image(path)
    if re.search(r"\.(tar\.\w+|tgz|zip|7z|rar)$", path.name, re.I):
        raise InputError(f"{path} is a packed archive; unpack it first, or pack it as plain .tar shards.")
    raise InputError(
        f"{path} is none of the files that are understood: images, {', '.join(manifest.SUFFIXES)}, .tar, .npz, "
        ".parquet, idx files and saved indices."
    )


def _folder(path: Path, root: Path | None, loose: bool) -> Pile:
    """Open a folder by what lies in it."""
    if huggingface.is_saved(path):
        return huggingface.open_saved(path)
    if idx.files_in(path):
        return idx.open_idx(path)
    if cifar.is_cifar(path):
        return cifar.open_cifar(path)
    if cifar.is_pickled_cifar(path):
        raise InputError(f"{path} holds CIFAR as pickles, which are not read; get the binary version (.bin files).")
    if flowers.is_flowers(path):
        return flowers.open_flowers(path)
    if pets.is_pets(path):
        return pets.open_pets(path)
    if tiny_imagenet.is_tiny_imagenet(path):
        return tiny_imagenet.open_tiny_imagenet(path)
    if vtab.is_vtab(path):
        return vtab.open_vtab(path)
    if tars := find_in_folder(path):
        return _noted(shards.open_shards(tars, str(path), beside=path), path, [tar for tar, _ in tars])
    if tables := parquet.files_in(path):
        return _noted(parquet.open_parquet(tables, str(path)), path, tables)
    return folder.open_folder(path, also=root, loose=loose)


def _noted(pile: Pile, path: Path, read: list[Path]) -> Pile:
    """Add a note about folders that were left alone because files beside them decided the kind: they may be classes."""
    used = {file.parent for file in read}
    others = sorted(entry.name for entry in path.iterdir() if entry.is_dir() and entry not in used)
    others = [name for name in others if not name.startswith(".")]
    if not others:
        return pile
    note = f"{path} was opened for files such as {read[0].name}; its folders ({few(others)}) were left alone."
    return replace(pile, notes=(*pile.notes, note))


def _debian() -> Pile:
    if not idx.DEBIAN.is_dir():
        raise InputError(
            f"Fashion-MNIST is not at {idx.DEBIAN}; install Debian's package dataset-fashion-mnist, or give the folder "
            "of the idx files."
        )
    return idx.open_idx(idx.DEBIAN, called=_DEBIAN)


def _near(path: Path) -> str:
    """Suggest something that is there."""
    beside = [entry.name for entry in path.parent.iterdir()] if path.parent.is_dir() else []
    return did_you_mean(path.name, [*beside, sample.NAME, _DEBIAN])
