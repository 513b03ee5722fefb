"""Class names in a file of their own, for a model that carries none, or others."""

import json
from pathlib import Path

from vitrail.base.errors import InputError

MOST_BYTES = 64 << 20
"""No list of names is larger."""


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


def read_text(path: Path) -> str:
    """Read a small file of names."""
    try:
        if path.stat().st_size > MOST_BYTES:
            raise InputError(f"{path} has more than {MOST_BYTES:,} bytes, too many for a list of names.")
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(f"{path} is no text in UTF-8.") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}.") from None


def _from_json(text: str, path: Path) -> tuple[str, ...]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} cannot be read as JSON ({error}).") from None
    if isinstance(found, dict):
        numbers = [str(number) for number in range(len(found))]
        if set(found) == set(numbers):
            found = [found[number] for number in numbers]
    if not isinstance(found, list) or not all(isinstance(name, str) for name in found):
        raise InputError(
            f"{path} holds no list of class names, nor a table from 0, 1, 2, ... to names; give one of these, or a "
            "text with a name on each line."
        )
    return tuple(found)
