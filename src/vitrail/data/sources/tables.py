"""The common parts of parquet and arrow files: a column of images, one of labels, and class names beside them."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from vitrail.base.errors import ImageError, InputError
from vitrail.data.dataset import UNLABELLED, Pictures
from vitrail.data.sources.pile import NO_SPLIT, Codebook, Pile, class_name, sort_classes

_IMAGES = ("image", "img", "picture", "jpg", "jpeg", "png", "webp")
_LABELS = ("label", "labels", "class", "target", "fine_label", "cls")


def find_columns(schema: Any, arrow: Any, what: str) -> tuple[str, str | None]:
    """Find the column of images ({bytes, path} or binary) and the one of labels (whole numbers or text)."""
    types = arrow.types
    images = [field.name for field in schema if _is_image(field.type, types)]
    image = next((name for name in _IMAGES if name in images), images[0] if len(images) == 1 else None)
    if image is None:
        raise InputError(
            f"{what} has the columns {', '.join(schema.names)}, but one of images is needed: binary, or with bytes and "
            f"path inside, called {' or '.join(_IMAGES[:2])}."
        )
    label = next((name for name in _LABELS if name in schema.names and name != image), None)
    for name in (image, label):
        if schema.names.count(name) > 1:
            raise InputError(
                f"{what} has {schema.names.count(name)} columns called {name}; rename all but one of them."
            )
    if label is not None and not _is_label(schema.field(label).type, types):
        raise InputError(
            f"the column {label} of {what} holds {schema.field(label).type}, but labels are whole numbers or text."
        )
    return image, label


def _is_label(kind: Any, types: Any) -> bool:
    if types.is_dictionary(kind):
        return _is_label(kind.value_type, types)
    return bool(types.is_integer(kind) or types.is_string(kind) or types.is_large_string(kind))


def _is_image(kind: Any, types: Any) -> bool:
    if types.is_struct(kind):
        at = kind.get_field_index("bytes")
        return at >= 0 and _is_image(kind.field(at).type, types)
    return bool(types.is_binary(kind) or types.is_large_binary(kind))


def listed_classes(metadata: dict[bytes, bytes] | None, label: str | None) -> tuple[str, ...] | None:
    """Return the class names that the writer of a file put into its metadata."""
    try:
        features = json.loads((metadata or {})[b"huggingface"])["info"]["features"]
        return tuple(class_name(str(name)) for name in features[label]["names"])
    except (KeyError, TypeError, ValueError):
        return None


def image_bytes(cell: Any) -> bytes:
    """Return the encoded image of a cell."""
    value = cell.as_py()
    if isinstance(value, dict):
        value = value.get("bytes")
    if not isinstance(value, bytes):
        raise ImageError("its row holds no bytes of an image; a path to another place is not followed.")
    return value


class Labels:
    """Collects the labels of several files."""

    def __init__(self, what: str) -> None:
        self.what = what
        self.book = Codebook(what)
        self.parts: list[np.ndarray] = []
        self.are_words = False

    def add(self, column: Any, length: int, arrow: Any) -> None:
        """Append the labels of one file; None for a file without."""
        if column is None:
            self.parts.append(np.full(length, UNLABELLED, np.int64))
            return
        kind = column.type.value_type if arrow.types.is_dictionary(column.type) else column.type
        self.are_words = self.are_words or not arrow.types.is_integer(kind)
        # A dictionary stays one: written out, a long word that is repeated would take all memory.
        for chunk in column.chunks:
            self.parts.append(self._codes(chunk, arrow))

    def _codes(self, chunk: Any, arrow: Any) -> np.ndarray:
        """Return the number of every label of a chunk: itself, or the number of a word."""
        if arrow.types.is_integer(chunk.type):
            return np.asarray(chunk.cast("int64").fill_null(UNLABELLED).to_numpy(zero_copy_only=False), np.int64)
        encoded = chunk if arrow.types.is_dictionary(chunk.type) else chunk.dictionary_encode()
        words = encoded.dictionary.to_pylist()
        codes = [
            UNLABELLED if word is None else word if isinstance(word, int) else self.book.code(word) for word in words
        ]
        table = np.array([*codes, UNLABELLED], np.int64)
        return table[np.asarray(encoded.indices.fill_null(len(codes)).to_numpy(zero_copy_only=False), np.int64)]

    def pile(
        self,
        pictures: Pictures,
        listed: tuple[str, ...] | None,
        splits: Sequence[tuple[str | None, int]],
    ) -> Pile:
        """Make a pile of everything; `splits` gives the split and length of each file."""
        targets = np.concatenate(self.parts)
        if not len(targets):
            raise InputError(f"{self.what} has no rows.")
        numeric = not self.are_words
        if self.are_words:
            names, targets, numeric = sort_classes(tuple(self.book.codes), targets.astype(np.int32), self.what)
        else:
            low, high = int(targets.min()), int(targets.max())
            names = listed or sort_classes([str(high)] if high >= 0 else [], np.empty(0, int), self.what)[0]
            if low < UNLABELLED or high >= len(names):
                wrong = low if low < UNLABELLED else high
                raise InputError(f"{self.what} has the label {wrong}, but {len(names)} classes, from 0.")
        split_names = tuple(dict.fromkeys(split for split, _ in splits if split))
        codes = [split_names.index(split) if split else NO_SPLIT for split, _ in splits]
        return Pile(
            pictures=pictures,
            targets=targets.astype(np.int32),
            names=names,
            fixed=listed is not None and not self.are_words,
            numeric=numeric and listed is None,
            splits=np.repeat(codes, [length for _, length in splits]).astype(np.int8) if split_names else None,
            split_names=split_names,
            notes=tuple(self.book.notes()),
        )


def in_file(error: Exception, path: Path) -> InputError:
    """Return the error for a damaged file."""
    reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
    return InputError(f"{path} is damaged or of another kind ({reason}); get the file again.")
