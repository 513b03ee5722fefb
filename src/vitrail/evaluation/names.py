"""How class names of data and model find each other: by name, never by number.

A name is looked for in three spellings, one after the other: as it is; without regard to case, underscores, hyphens and
spaces; and as one of several names that the label of a model lists, as ImageNet's do: `n01440764 tench, Tinca tinca` is
found by `n01440764`, `tench` and `tinca_tinca`. The first spelling that finds anything decides; if it finds two, nobody
guesses.
"""

import re
from collections.abc import Callable, Sequence

from vitrail.base.errors import InputError
from vitrail.data.classes import few
from vitrail.data.sources.pile import class_name, is_number

_WORDNET = re.compile(r"(n\d{8})\b[\s,:]*")
_BETWEEN = re.compile(r"[\s_-]+")


def spelled(name: str) -> str:
    """Return a name in a spelling that case, underscores, hyphens and spaces do not change."""
    return _BETWEEN.sub(" ", class_name(name).casefold()).strip()


def aliases(label: str) -> list[str]:
    """Return every name that a label lists, a WordNet id in front included."""
    found = _WORDNET.match(label)
    rest = label[found.end() :] if found else label
    names = [spelled(part) for part in rest.split(",")]
    return [name for name in ([found[1]] if found else []) + names if name]


_SPELLINGS: tuple[tuple[Callable[[str], str], Callable[[str], list[str]]], ...] = (
    (class_name, lambda label: [class_name(label)]),
    (spelled, lambda label: [spelled(label)]),
    (spelled, aliases),
)


class Labels:
    """The class names of a model, to look names up in."""

    def __init__(self, labels: Sequence[str]) -> None:
        self.labels = tuple(labels)
        self.places: list[dict[str, list[int]]] = []
        for _, listed in _SPELLINGS:
            table: dict[str, list[int]] = {}
            for at, label in enumerate(self.labels):
                for name in dict.fromkeys(listed(label)):
                    table.setdefault(name, []).append(at)
            self.places.append(table)

    def find(self, name: str) -> list[int]:
        """Return the classes that a name means: none, one, or several when it is not clear."""
        for (spell, _), table in zip(_SPELLINGS, self.places, strict=True):
            if found := table.get(spell(name)):
                return found
        return []

    def match(self, names: Sequence[str], *, where: str) -> list[int | None]:
        """Return the class that each name means, None where there is none; refuse what is not clear."""
        found = [self.find(name) for name in names]
        several = [(name, at) for name, at in zip(names, found, strict=True) if len(at) > 1]
        if several:
            unclear = [f"{name} ({' or '.join(map(str, at))})" for name, at in several]
            raise InputError(
                f"{where} has classes that several classes of the model are called, by their numbers: {few(unclear)}; "
                "say with `class_map` which is meant."
            )
        single = [at[0] if at else None for at in found]
        taken: dict[int, str] = {}
        for name, at in zip(names, single, strict=True):
            if at is not None and taken.setdefault(at, name) != name:
                raise InputError(
                    f"{where} has the classes {taken[at]} and {name}, which are both {self.labels[at]} in the model; "
                    "rename one, or say with `class_map` that they are the same."
                )
        return single


def are_numbers(names: Sequence[str]) -> bool:
    """Tell whether names are just 0, 1, 2 and so on, in order."""
    return len(names) > 0 and all(is_number(name) and int(name) == at for at, name in enumerate(names))
