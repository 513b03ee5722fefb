"""Class maps: a file that gives the model classes of each data class, as ObjectNet's maps to ImageNet do.

JSON: an object of data class to model class, or to a list of them. CSV: two columns, data class and model class, with a
line for each pair and, optionally, the heading `data,model`. A model class is a name, or its number from 0.
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
"""From each data class to the names or numbers of its model classes."""


def read_class_map(path: Path) -> ClassMap:
    """Read a map, JSON or CSV by its extension."""
    return _csv(path) if path.suffix.lower() == ".csv" else _json(path)


def resolve(class_map: ClassMap, labels: Sequence[str] | None, num_classes: int, *, where: str) -> dict[str, list[int]]:
    """Turn the model classes of a map into numbers of outputs, or raise one error with every unknown name."""
    model_labels = Labels(labels or ())
    unknown: dict[str, None] = {}
    outputs: dict[str, list[int]] = {}
    for data_class, names in class_map.items():
        numbers = [at for name in names for at in _outputs(name, model_labels, num_classes, unknown)]
        outputs[data_class] = list(dict.fromkeys(numbers))
    if unknown:
        names = f"the model has {few(model_labels.labels)}" if model_labels.labels else "the model has no class names"
        raise InputError(
            f"{where} names {len(unknown)} classes that the model lacks or that are ambiguous: {few(list(unknown))}; "
            f"{names}. Give names of model classes, or numbers from 0 to {num_classes - 1}."
        )
    return outputs


def _outputs(name: str | int, labels: Labels, num_classes: int, unknown: dict[str, None]) -> list[int]:
    """Return the output that a name or number means; add to `unknown` what means none, or several."""
    numbers = [name] if isinstance(name, int) else labels.find(name)
    if not numbers and isinstance(name, str) and is_number(name):
        numbers = [int(name)]
    if len(numbers) != 1 or not 0 <= numbers[0] < num_classes:
        unknown[str(name)] = None
        return []
    return numbers


def _json(path: Path) -> ClassMap:
    content = read_json(path)
    if not isinstance(content, dict) or not content:
        raise InputError(f'{path} must be an object such as {{"mug": ["coffee mug", "cup"]}}, and not empty.')
    lists = {name: value if isinstance(value, list) else [value] for name, value in content.items()}
    for name, values in lists.items():
        if not values or not all(type(value) in (str, int) for value in values):
            raise InputError(f"{path} maps {name!r} to something other than a class of the model or a list of them.")
    return lists


def _csv(path: Path) -> ClassMap:
    lists: dict[str, list[str | int]] = {}
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
            lists.setdefault(cells[0], []).append(cells[1])
    except csv.Error as error:
        raise InputError(f"{path} is not CSV from line {rows.line_num} on: {error}.") from None
    if not lists:
        raise InputError(f"{path} maps no class; give lines such as `mug,coffee mug`.")
    return lists
