"""The labels of ImageNet's validation images, which are published as one flat folder.

Looked for in the root, in the folder of the images, and in a devkit's `data` folder, in this order:

- a map of names to WordNet ids, one image a line (`ILSVRC2012_val_00000001.JPEG n01751748`; commas and tabs too, more
  columns are not read): `val_labels.txt`, `val_labels.csv`, `val_map.txt`, `LOC_val_solution.csv`;
- a WordNet id a line in the order of the images' names: `imagenet_2012_validation_synset_labels.txt`;
- the devkit's `ILSVRC2012_validation_ground_truth.txt`, a number a line, with the devkit's `meta.mat`, or with a list
  of WordNet ids **in the devkit's order** (`synsets.txt` or `synset_words.txt`, first word of each line).

The lists of ids that circulate under the last two names are often in alphabetical order, in which the devkit's numbers
mean other classes (number 1 is n02119789 there, a kit fox); such a list is refused.
"""

import re
from itertools import chain
from pathlib import Path

from vitrail.base.errors import InputError
from vitrail.base.reading import read_text
from vitrail.data.sources.files import is_file_in
from vitrail.data.sources.matlab import read_matlab

_MAPS = ("val_labels.txt", "val_labels.csv", "val_map.txt", "LOC_val_solution.csv")
_LISTS = ("imagenet_2012_validation_synset_labels.txt",)
_TRUTH = "ILSVRC2012_validation_ground_truth.txt"
_META = "meta.mat"
_ORDERS = ("synsets.txt", "synset_words.txt")
_IMAGE = re.compile(r"ILSVRC2012_val_(\d{8})\.jpe?g", re.I)
_MAP_LINE = re.compile(r"\s*(\S+?)(?:\.jpe?g)?[\s,]+(n\d{8})\b", re.I)
_WORDNET = re.compile(r"n\d{8}\b")


def validation_labels(root: Path, folder: Path, names: list[str]) -> list[str] | None:
    """Return the WordNet id of each image, None when the images are not ImageNet's or have no labels beside them."""
    if not names or not all(map(_IMAGE.fullmatch, names)):
        return None
    places = [root, folder, *sorted(root.glob("ILSVRC2012_devkit*/data"))]
    candidates = (*_MAPS, *_LISTS, _TRUTH, _META, *_ORDERS)
    files = {name: place / name for place in reversed(places) for name in candidates if is_file_in(root, place / name)}
    if path := _first(files, _MAPS):
        return _mapped(path, names)
    if path := _first(files, _LISTS):
        return _in_order(path, _WORDNET.findall(_text(path)), names)
    if path := files.get(_TRUTH):
        return _ground_truth(path, files, names)
    return None


def _first(files: dict[str, Path], names: tuple[str, ...]) -> Path | None:
    return next((files[name] for name in names if name in files), None)


def _text(path: Path) -> str:
    return read_text(path, errors="replace")


def _mapped(path: Path, names: list[str]) -> list[str]:
    """Look every image up in a map of names to ids."""
    lines = map(_MAP_LINE.match, _text(path).splitlines())
    table = {line[1].lower(): line[2] for line in lines if line}
    stems = [name.rpartition(".")[0].lower() for name in names]
    if missing := [stem for stem in stems if stem not in table]:
        raise InputError(
            f"{path} gives no WordNet id for {len(missing)} of {len(names)} validation images, such as {missing[0]}; "
            "it needs a line `NAME ID` for each."
        )
    return [table[stem] for stem in stems]


def _in_order(path: Path, listed: list[str], names: list[str]) -> list[str]:
    """Return the ids of a list for the images, by their numbers: image 1 has the first, and so on."""
    numbers = [int(match[1]) for match in map(_IMAGE.fullmatch, names) if match]
    if max(numbers) > len(listed) or min(numbers) < 1:
        raise InputError(f"{path} lists {len(listed)} labels, but there is a validation image number {max(numbers)}.")
    return [listed[number - 1] for number in numbers]


def _ground_truth(path: Path, files: dict[str, Path], names: list[str]) -> list[str]:
    """Turn the devkit's numbers into WordNet ids."""
    if _META in files:
        order = _order(files[_META])
    elif listed := _first(files, _ORDERS):
        ids = list(chain.from_iterable(_WORDNET.findall(line)[:1] for line in _text(listed).splitlines()))
        if len(ids) >= 1000 and ids == sorted(ids):
            raise InputError(
                f"{listed} is in alphabetical order, which is not the order of the numbers in {path.name}; "
                "put the devkit's meta.mat beside it."
            )
        order = dict(enumerate(ids, start=1))
    else:
        raise InputError(
            f"{path} numbers the classes as the devkit does; put the devkit's meta.mat beside it, or a map "
            f"{_MAPS[0]} with a line `NAME ID` for each validation image."
        )
    try:
        listed_ids = [order[int(word)] for word in _text(path).split()]
    except (ValueError, KeyError) as error:
        raise InputError(f"{path} has the label {error}, which is none of the {len(order)} classes.") from None
    return _in_order(path, listed_ids, names)


def _order(path: Path) -> dict[int, str]:
    """Read which WordNet id each number of the devkit means."""
    try:
        synsets = read_matlab(path)["synsets"]
        pairs = zip(synsets["ILSVRC2012_ID"], synsets["WNID"], strict=True)
        return {int(number.item()): str(wnid) for number, wnid in pairs}
    except (KeyError, TypeError, ValueError, AttributeError):
        raise InputError(f"{path} has no table synsets of ILSVRC2012_ID and WNID; get the devkit's file.") from None
