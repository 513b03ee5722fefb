"""The result of an explanation: maps of one image, or of many, with figures of their trustworthiness."""

import base64
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import isnan, nan
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, UInt8

from vitrail.analysis.methods import Method, is_signed
from vitrail.analysis.placing import place
from vitrail.base.table import Table, Tabular
from vitrail.data.preprocessing import Preprocessing
from vitrail.evaluation.bootstrap import Interval, bootstrap
from vitrail.model.patches import Size
from vitrail.report.markup import percent
from vitrail.report.overlay import overlay, side_by_side

Picture = UInt8[np.ndarray, "height width 3"]

RANDOM = "random maps"
TRUST_NOTE = (
    "Deletion is better when it is lower, insertion when it is higher; a gain whose interval includes 0 is not better "
    "than random maps, and one image has no interval."
)


@dataclass(frozen=True, kw_only=True, eq=False)
class Trust:
    """Deletion and insertion of one map, beside those of random maps; see `vitrail.analysis.faithfulness`."""

    shares: Float[np.ndarray, "point"]
    """The share of the image that is covered, or uncovered."""
    deletion: Float[np.ndarray, "point"]
    """The probability of the class while the image is covered in the order of the map."""
    insertion: Float[np.ndarray, "point"]
    """The probability of the class while the image is uncovered in that order."""
    random_deletion: Float[np.ndarray, "point"]
    """The same in random order, as a mean."""
    random_insertion: Float[np.ndarray, "point"]
    """The same in random order, as a mean."""

    @property
    def areas(self) -> dict[str, float]:
        """The areas below the four curves, by name."""
        names = ("deletion", "random_deletion", "insertion", "random_insertion")
        return {name: float(np.trapezoid(getattr(self, name), self.shares)) for name in names}


@dataclass(frozen=True, kw_only=True, eq=False)
class HeatMap:
    """How much each place of an image counts for one class, by one method."""

    method: Method
    """The method."""
    label: str
    """The class that is explained."""
    probability: float
    """The probability of that class."""
    values: Float[np.ndarray, "rows columns"]
    """The map, over the network's input, on the method's own grid: patches, pixels, or cells of a feature map."""
    cells: Float[np.ndarray, "cell_rows cell_columns"]
    """The same on the grid in which the image is covered for deletion and insertion."""
    trust: Trust | None = None
    """How faithful the map is; None where that was not measured."""
    error: float | None = None
    """Of integrated gradients: by how much the values miss the sum that they should have, as a share of the sum
    of their sizes."""

    @property
    def title(self) -> str:
        """The class with its probability, and the method."""
        return f"{self.label} {percent(self.probability)}, {self.method}"

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the map's finest grid as plain values for JSON."""
        return {
            "method": self.method,
            "class": self.label,
            "probability": self.probability,
            "map": np.round(self.cells, 7).tolist(),
            "areas": None if self.trust is None else self.trust.areas,
            "completeness_error": self.error,
        }


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Explanation:
    """One image, the model's answers, and its maps."""

    name: str
    """The path of the image, or its place among the others."""
    image_size: Size
    """Height and width of the original image."""
    picture: Picture
    """The image as it is shown, at most 512 pixels a side."""
    preprocessing: Preprocessing
    """How the image became the network's input."""
    top: tuple[tuple[str, float], ...]
    """The most probable classes with their probabilities."""
    maps: tuple[HeatMap, ...]
    """The maps, the most important first."""

    def overlay(self, heat: HeatMap | None = None) -> Picture:
        """Return the image below one of its maps, the first unless another is named; dark where it was cropped."""
        heat = heat or self.maps[0]
        size = (self.picture.shape[0], self.picture.shape[1])
        placed = place(heat.values, self.preprocessing, self.image_size, size)
        return overlay(self.picture, placed, signed=is_signed(heat.method))

    def png(self) -> bytes:
        """Return the image and its overlays side by side."""
        pictures = [self.picture, *(self.overlay(heat) for heat in self.maps)]
        buffer = io.BytesIO()
        side_by_side(pictures, [Path(self.name).name, *(heat.title for heat in self.maps)]).save(buffer, "PNG")
        return buffer.getvalue()

    def to_dict(self) -> dict[str, Any]:
        """Return everything but pixels as plain values for JSON."""
        return {
            "image": self.name,
            "image_size": list(self.image_size),
            "seen": list(self.preprocessing.window(*self.image_size)),
            "top": [{"class": label, "probability": probability} for label, probability in self.top],
            "maps": [heat.to_dict() for heat in self.maps],
        }

    def __repr__(self) -> str:
        """Name the image and the explained classes."""
        return f"<Explanation of {self.name}: {'; '.join(heat.title for heat in self.maps)}>"

    def _repr_html_(self) -> str:
        """Show the image and its overlays, in a notebook."""
        address = f"data:image/png;base64,{base64.b64encode(self.png()).decode()}"
        return f'<img src="{address}" style="max-width:100%">'


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
