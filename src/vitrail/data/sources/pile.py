"""The result of a source: pictures, and facts about each; the catalog makes data sets from it."""

import unicodedata
from array import array
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int

from vitrail.base.errors import InputError
from vitrail.data.budget import Skipped
from vitrail.data.stored import UNLABELLED, Pictures

IMAGE_SUFFIXES = frozenset({".jpg", ".jpeg", ".jfif", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff"})
MOST_CLASSES = 1_000_000
MOST_LETTERS = 4096
"""Of a class name."""
NO_SPLIT = -1

_SPLITS = {
    "train": "train",
    "training": "train",
    "val": "val",
    "valid": "val",
    "validation": "val",
    "dev": "val",
    "test": "test",
    "testing": "test",
}

Codes = Int[np.ndarray, "image"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Pile:
    """Everything in one place."""

    pictures: Pictures
    targets: Codes
    """The class of each picture as an index into `names`, or -1."""
    names: tuple[str, ...]
    """The class names that `targets` counts."""
    fixed: bool = False
    """Whether the source itself lists its classes; if not, training decides which there are."""
    numeric: bool = False
    """Whether the labels are whole numbers, so that `names` are just those numbers."""
    splits: Codes | None = None
    """The split of each picture as an index into `split_names`, or -1; None for one pile."""
    split_names: tuple[str, ...] = ()
    channels: int = 3
    broken: tuple[Skipped, ...] = ()
    """Entries that should have been images: charged to the budget."""
    ignored: tuple[Skipped, ...] = ()
    """Entries that are ignored and reported: links to elsewhere, hostile members."""
    notes: tuple[str, ...] = ()


def split_of(name: str) -> str | None:
    """Return the split that a folder, a shard or a column names, in any case; None when it names none."""
    return _SPLITS.get(name.strip().casefold())


def is_image(name: str) -> bool:
    """Return whether a file should be an image, by its extension."""
    dot = name.rfind(".")
    return dot > 0 and name[dot:].lower() in IMAGE_SUFFIXES


def class_name(name: str) -> str:
    """Return a class name in one spelling: composed characters, no space around it, nothing that is not text."""
    return unicodedata.normalize("NFC", name.encode(errors="backslashreplace").decode()).strip()


class Codebook:
    """Turns words into numbers in the order of their appearance; spellings of one class name have one number."""

    def __init__(self, what: str) -> None:
        self.what = what
        self.codes: dict[str, int] = {}
        """Class name -> its number."""
        self.values = array("i")
        self._spellings: dict[str, int] = {"": UNLABELLED}

    def code(self, word: str) -> int:
        """Return the number of a word, a new one if need be; a word without letters is -1."""
        code = self._spellings.get(word)
        if code is not None:
            return code
        if len(word) > MOST_LETTERS:
            raise InputError(
                f"{self.what} has a label of {len(word):,} letters, but a class name has at most {MOST_LETTERS:,}; the "
                "column or member of labels is probably another one."
            )
        name = class_name(word)
        code = self.codes.setdefault(name, len(self.codes)) if name else UNLABELLED
        if code >= MOST_CLASSES:
            raise InputError(
                f"{self.what} has more than {MOST_CLASSES} different labels; the column or member of labels is "
                "probably another one."
            )
        self._spellings[word] = code
        return code

    def notes(self) -> list[str]:
        """Return notes about words that became one class although they are written differently."""
        spellings: dict[int, list[str]] = {}
        for word, code in self._spellings.items():
            spellings.setdefault(code, []).append(word)
        several = [words for code, words in spellings.items() if code != UNLABELLED and len(words) > 1]
        if not several:
            return []
        listing = "; ".join(_spellings(words) for words in several[:3]) + ("; and more" if len(several) > 3 else "")
        return [f"{len(several)} classes are written in more than one way, and each was taken as one: {listing}."]

    def add(self, word: str) -> None:
        """Append the number of a word."""
        self.values.append(self.code(word))

    def __len__(self) -> int:
        """Count the words."""
        return len(self.values)


def _spellings(words: list[str]) -> str:
    """Quote spellings of one name so that their difference shows: spaces, or the code points of one letter."""
    same = len({word.strip() for word in words}) == 1
    return " and ".join(map(repr if same else ascii, words))


def is_number(word: str) -> bool:
    """Return whether a label is a whole number, written as one."""
    digits = word.removeprefix("-")
    return digits.isascii() and digits.isdigit() and len(digits) <= 18


def sort_classes(
    words: Sequence[str], codes: Codes, what: str, *, numbers: bool = True
) -> tuple[tuple[str, ...], Codes, bool]:
    """Order the words of a `Codebook`: whole numbers are indices (if `numbers`), others are sorted by code point.

    Returns the names, the codes in terms of them, and whether they are indices.
    """
    if numbers and words and all(map(is_number, words)):
        names, table = _indices(words, what)
        return names, table[codes], True
    names = tuple(sorted(words))
    place = {name: at for at, name in enumerate(names)}
    table = np.array([*(place[word] for word in words), UNLABELLED], np.int32)
    return names, table[codes], False  # code -1 finds the last entry


def _indices(words: Sequence[str], what: str) -> tuple[tuple[str, ...], Codes]:
    """Take words as indices of classes: return the names of all classes, and the index of each word."""
    numbers = [int(word) for word in words]
    if min(numbers) < 0 or max(numbers) >= MOST_CLASSES:
        raise InputError(
            f"{what} has the label {min(numbers) if min(numbers) < 0 else max(numbers)}; whole numbers are indices of "
            f"classes, from 0 to at most {MOST_CLASSES - 1}. Count from 0, or write names."
        )
    return tuple(map(str, range(max(numbers) + 1))), np.array([*numbers, UNLABELLED], np.int32)
