"""Class names in a file of their own, for a model that carries none, or others."""

from pathlib import Path

from vitrail.base.errors import InputError
from vitrail.base.reading import parse_json, read_text


def read_labels(path: Path, num_classes: int) -> tuple[str, ...]:
    """Read a name for each class, in the order of the outputs: lines, a JSON list, or a JSON table from number to name.

    A file is JSON by its suffix, or because it begins with a bracket.
    """
    text = read_text(path)
    if path.suffix.lower() == ".json" or text.lstrip().startswith("["):
        labels = _from_json(text, path)
    else:
        labels = tuple(line.strip() for line in text.rstrip().splitlines())
        if "" in labels:
            raise InputError(
                f"line {labels.index('') + 1} of {path} is empty; give a name on each line, in the order of the "
                "model's outputs."
            )
    if len(labels) != num_classes:
        raise InputError(
            f"{path} has {len(labels)} names, but the model has {num_classes} classes; give one name for each, in the "
            "order of the model's outputs."
        )
    return labels


def _from_json(text: str, path: Path) -> tuple[str, ...]:
    names = parse_json(text, str(path))
    if isinstance(names, dict):
        numbers = [str(number) for number in range(len(names))]
        if set(names) == set(numbers):
            names = [names[number] for number in numbers]
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise InputError(
            f"{path} is neither a list of class names nor a table from 0, 1, 2, ... to names; give one of these, or a "
            "text with a name on each line."
        )
    return tuple(names)
