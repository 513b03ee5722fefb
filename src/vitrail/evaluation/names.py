"""How classes of the data are matched to those of the model: by name, never by number.

Three spellings are tried in order: the name as it is; the name without regard to case, underscores, hyphens and spaces;
and each of the names that a label lists, as ImageNet's do: `n01440764 tench, Tinca tinca` is found by `n01440764`,
`tench` and `tinca_tinca`. The first spelling that matches decides; two matches are refused.
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
    wordnet_id = _WORDNET.match(label)
    rest = label[wordnet_id.end() :] if wordnet_id else label
    names = [spelled(part) for part in rest.split(",")]
    return [name for name in ([wordnet_id[1]] if wordnet_id else []) + names if name]


_SPELLINGS: tuple[tuple[Callable[[str], str], Callable[[str], list[str]]], ...] = (
    (class_name, lambda label: [class_name(label)]),
    (spelled, lambda label: [spelled(label)]),
    (spelled, aliases),
)


class Labels:
    """The class names of a model, for looking up names."""

    def __init__(self, labels: Sequence[str]) -> None:
        self.labels = tuple(labels)
        self.places: list[dict[str, list[int]]] = []
        for _, names_of in _SPELLINGS:
            table: dict[str, list[int]] = {}
            for at, label in enumerate(self.labels):
                for name in dict.fromkeys(names_of(label)):
                    table.setdefault(name, []).append(at)
            self.places.append(table)

    def find(self, name: str) -> list[int]:
        """Return the classes that a name means: none, one, or several when it is ambiguous."""
        for (spell, _), table in zip(_SPELLINGS, self.places, strict=True):
            if places := table.get(spell(name)):
                return places
        return []

    def match(self, names: Sequence[str], *, where: str) -> list[int | None]:
        """Return the class that each name means, or None; refuse ambiguous names."""
        matches = [self.find(name) for name in names]
        several = [(name, at) for name, at in zip(names, matches, strict=True) if len(at) > 1]
        if several:
            unclear = [f"{name} ({' or '.join(map(str, at))})" for name, at in several]
            raise InputError(
                f"{where} has classes that match several of the model, numbered from 0: {few(unclear)}; "
                "choose one with `class_map`."
            )
        single = [at[0] if at else None for at in matches]
        owners: dict[int, str] = {}
        for name, at in zip(names, single, strict=True):
            if at is not None and owners.setdefault(at, name) != name:
                raise InputError(
                    f"{where} has the classes {owners[at]} and {name}, which are both {self.labels[at]} in the model; "
                    "rename one, or give `class_map` to merge them."
                )
        return single


def are_numbers(names: Sequence[str]) -> bool:
    """Return whether names are 0, 1, 2 and so on, in order."""
    return len(names) > 0 and all(is_number(name) and int(name) == at for at, name in enumerate(names))
