"""Which classes of a model a class of the data stands for, given as a file, as ObjectNet's maps to ImageNet are.

JSON: an object of data class to model class, or to a list of them. CSV: two columns, data class and model class, with a
line for each pair and, if somebody likes, the heading `data,model`. A model class is a name, or its number from 0.
"""

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path

from vitrail.base.errors import InputError
from vitrail.base.reading import read_json, read_text
from vitrail.data.classes import few
from vitrail.data.sources.pile import is_number
from vitrail.evaluation.names import Labels

HEADING = ["data", "model"]
ClassMap = Mapping[str, Sequence[str | int]]
"""Data class -> names or numbers of model classes."""


def read_class_map(path: Path) -> ClassMap:
    """Read a map, JSON or CSV by its extension."""
    return _csv(path) if path.suffix.lower() == ".csv" else _json(path)


def resolve(given: ClassMap, labels: Sequence[str] | None, num_classes: int, *, where: str) -> dict[str, list[int]]:
    """Turn the model classes of a map into numbers of outputs, or list every name that is none."""
    known = Labels(labels or ())
    unknown: dict[str, None] = {}
    made: dict[str, list[int]] = {}
    for data_class, names in given.items():
        found = [at for name in names for at in _outputs(name, known, num_classes, unknown)]
        made[data_class] = list(dict.fromkeys(found))
    if unknown:
        has = f"the model has {few(known.labels)}" if known.labels else "the model has no class names"
        raise InputError(
            f"{where} names {len(unknown)} classes that the model lacks, or that are not clear: {few(list(unknown))}; "
            f"{has}. Give names of the model's, or numbers from 0 to {num_classes - 1}."
        )
    return made


def _outputs(name: str | int, known: Labels, num_classes: int, unknown: dict[str, None]) -> list[int]:
    """Return the output that a name or number means; note what means none, or several."""
    found = [name] if isinstance(name, int) else known.find(name)
    if not found and isinstance(name, str) and is_number(name):
        found = [int(name)]
    if len(found) != 1 or not 0 <= found[0] < num_classes:
        unknown[str(name)] = None
        return []
    return found


def _json(path: Path) -> ClassMap:
    given = read_json(path)
    if not isinstance(given, dict) or not given:
        raise InputError(f'{path} must be an object such as {{"mug": ["coffee mug", "cup"]}}, and not empty.')
    made = {name: value if isinstance(value, list) else [value] for name, value in given.items()}
    for name, values in made.items():
        if not values or not all(type(value) in (str, int) for value in values):
            raise InputError(f"{path} gives {name!r} what is neither a class of the model nor a list of them.")
    return made


def _csv(path: Path) -> ClassMap:
    made: dict[str, list[str | int]] = {}
    rows = csv.reader(read_text(path).splitlines())
    try:
        for row in rows:
            cells = [cell.strip() for cell in row]
            if not any(cells) or (rows.line_num == 1 and [cell.lower() for cell in cells] == HEADING):
                continue
            if len(cells) != 2 or not all(cells):
                raise InputError(
                    f"line {rows.line_num} of {path} is {','.join(row)!r}, but must have two cells: a class of the "
                    "data and a class of the model."
                )
            made.setdefault(cells[0], []).append(cells[1])
    except csv.Error as error:
        raise InputError(f"{path} is no CSV from line {rows.line_num} on: {error}.") from None
    if not made:
        raise InputError(f"{path} maps no class; give lines such as `mug,coffee mug`.")
    return made
