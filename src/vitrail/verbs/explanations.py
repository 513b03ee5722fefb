"""The result of `vitrail.explain`: explanations of images, and how far the methods can be trusted over all of them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import isnan, nan
from pathlib import Path
from typing import Any

import numpy as np

from vitrail.analysis.methods import Method
from vitrail.base.table import Table, Tabular
from vitrail.evaluation.bootstrap import Interval, bootstrap
from vitrail.report.markup import percent
from vitrail.verbs.explanation import Explanation, Trust

RANDOM = "random maps"
TRUST_NOTE = (
    "Deletion is better when it is lower, insertion when it is higher; a gain whose interval includes 0 is not better "
    "than random maps, and one image has no interval."
)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Explanations(Tabular, Sequence[Explanation]):
    """What `vitrail.explain` returns: an explanation of each image, and how far its methods can be trusted."""

    model: str
    """The name of the model: its file, if it has one."""
    images: tuple[Explanation, ...]
    """The images that could be read."""
    failures: tuple[tuple[str, str], ...] = ()
    """The others, and why."""
    notes: tuple[str, ...] = ()
    """Notes for the user, a sentence each."""
    files: Mapping[str, Path] = field(default_factory=dict)
    """The written files: `folder`, `page`."""

    def __len__(self) -> int:
        """Count the images."""
        return len(self.images)

    def __getitem__(self, index: Any) -> Any:
        """Return one explanation, or some of them."""
        return self.images[index]

    def __iter__(self) -> Iterator[Explanation]:
        """Yield each explanation."""
        return iter(self.images)

    @property
    def methods(self) -> tuple[Method, ...]:
        """The methods that were used."""
        return tuple(dict.fromkeys(heat.method for image in self.images for heat in image.maps))

    def trusts(self, method: Method) -> list[Trust]:
        """Return how faithful a method was, on each image where that was measured."""
        maps = (heat for image in self.images for heat in image.maps if heat.method == method)
        return [heat.trust for heat in maps if heat.trust is not None]

    def areas(self, method: Method) -> dict[str, Interval]:
        """Return the mean areas of a method over the images, each with its 95% interval; see `Trust.areas`.

        `gain` is how much better than random maps it is: the fall of deletion and the rise of insertion together. One
        image has no interval, so that its ends are NaN.
        """
        rows = [trust.areas for trust in self.trusts(method)]
        if not rows:
            return {}
        columns = {name: np.array([row[name] for row in rows]) for name in rows[0]}
        columns["gain"] = (columns["random_deletion"] - columns["deletion"]) + (
            columns["insertion"] - columns["random_insertion"]
        )
        if len(rows) == 1:
            return {name: Interval(value=float(values[0]), low=nan, high=nan) for name, values in columns.items()}
        return bootstrap(
            lambda counts: {name: float(counts @ values / counts.sum()) for name, values in columns.items()}, len(rows)
        )

    def tables(self) -> list[Table]:
        """Return the images, and the methods beside random maps."""
        columns = ("image", "class", "method", "deletion", "insertion")
        rows = (row for image, name in zip(self.images, self._short_names(), strict=True) for row in _rows(image, name))
        tables = [Table(title=f"What {self.model} looked at", columns=columns, rows=tuple(rows))]
        trust = self.trust_table()
        return tables if trust is None else [*tables, trust]

    def trust_table(self) -> Table | None:
        """Return the mean areas of each method, the best first, and of random maps; None where none was measured."""
        means = {method: areas for method in self.methods if (areas := self.areas(method))}
        if not means:
            return None
        ranking = sorted(means, key=lambda method: -means[method]["gain"].value)
        random = means[ranking[0]]
        return Table(
            title="Can the maps be trusted?",
            columns=("method", "deletion", "insertion", "gain", "95% interval"),
            rows=(
                *((method, *_areas_row(means[method])) for method in ranking),
                (RANDOM, f"{random['random_deletion'].value:.3f}", f"{random['random_insertion'].value:.3f}", "", ""),
            ),
            notes=(TRUST_NOTE,),
        )

    def _short_names(self) -> list[str]:
        """Return the names of the images without their folders, or with them where two would be the same."""
        names = [Path(image.name).name for image in self.images]
        return names if len(set(names)) == len(names) else [image.name for image in self.images]

    def to_dict(self) -> dict[str, Any]:
        """Return everything but pixels as plain values for JSON."""
        return {
            "model": self.model,
            **{kind: str(path) for kind, path in self.files.items()},
            "methods": {method: _plain(areas) for method in self.methods if (areas := self.areas(method))},
            "images": [image.to_dict() for image in self.images],
            "failures": [{"image": name, "error": reason} for name, reason in self.failures],
            "notes": list(self.notes),
        }


def _rows(image: Explanation, name: str) -> Iterator[tuple[str, ...]]:
    """Yield a row for each map, and one for random maps; the name of the image stands in the first."""
    trusts = []
    for heat in image.maps:
        cells = ("", "")
        if heat.trust is not None:
            trusts.append(heat.trust.areas)
            cells = f"{trusts[-1]['deletion']:.3f}", f"{trusts[-1]['insertion']:.3f}"
        yield (name if heat is image.maps[0] else "", f"{heat.label} {percent(heat.probability)}", heat.method, *cells)
    if trusts:
        yield "", "", RANDOM, f"{trusts[0]['random_deletion']:.3f}", f"{trusts[0]['random_insertion']:.3f}"


def _areas_row(areas: Mapping[str, Interval]) -> tuple[str, ...]:
    gain = areas["gain"]
    span = "" if isnan(gain.low) else f"{gain.low:.3f} to {gain.high:.3f}"
    return (*(f"{areas[name].value:.3f}" for name in ("deletion", "insertion", "gain")), span)


def _plain(areas: Mapping[str, Interval]) -> dict[str, dict[str, float | None]]:
    """Return areas as values that JSON can hold."""
    ends = {name: (None, None) if isnan(area.low) else (area.low, area.high) for name, area in areas.items()}
    return {name: {"value": area.value, "low": ends[name][0], "high": ends[name][1]} for name, area in areas.items()}
