"""The names of classes: those that the model carries, those of a file, or numbers."""

import json
from pathlib import Path

from vitrail.base.errors import InputError

MOST_BYTES = 16 << 20


def read_labels(path: Path) -> tuple[str, ...]:
    """Read class names in the order of the outputs: a line each, a JSON list, or a JSON table from number to name."""
    try:
        if path.stat().st_size > MOST_BYTES:
            raise InputError(
                f"{path} has {path.stat().st_size:,} bytes, more than the {MOST_BYTES:,} of a list of names."
            )
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InputError(f"the labels in {path} cannot be read: {error.strerror or error}.") from None
    except UnicodeDecodeError:
        raise InputError(f"{path} is no text in UTF-8; give a file with a class name on each line.") from None
    if path.suffix.lower() == ".json":
        return _from_json(text, path)
    lines = [line.strip() for line in text.rstrip().splitlines()]
    if "" in lines:
        raise InputError(
            f"line {lines.index('') + 1} of {path} is empty; give a name on each line, in the order of the outputs."
        )
    return tuple(lines)


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
